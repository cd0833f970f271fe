"""What a retry as a middleware of aiohttp does, and what stands in its place."""

import io

import aiohttp
import pytest
from aiohttp import web
from stream_server import hang_up, in_pieces

from aioretry_smithy import RequestLog

pytestmark = [
    pytest.mark.filterwarnings("ignore:Unclosed connection:ResourceWarning"),
    pytest.mark.usefixtures("_connections_left_behind"),
]


async def status_of(session, method="GET", **arguments):
    async with session, session.request(method, "/", **arguments) as response:
        return response.status


async def test_other_middlewares_see_each_attempt(either, scripted, waits):
    """They sign it afresh."""
    signed = []

    def check(request):
        signed.append(request.headers["Authorization"])
        return web.Response(status=503)

    _, url = await scripted(check)
    await status_of(either.new_session(url))

    assert ["Bearer token"] * 3 == signed


@pytest.mark.parametrize("opened", ["BytesIO", "file"])
async def test_files_are_sent_again(either, scripted, waits, opened, tmp_path):
    """By the one as by the other."""
    path = tmp_path / "report"
    path.write_bytes(b"a report")
    server, url = await scripted(503, 503, 200)
    with path.open("rb") if opened == "file" else io.BytesIO(b"a report") as body:
        await status_of(either.new_session(url), "PUT", data=body)

    assert [b"a report"] * 3 == server.bodies


async def test_generator_is_not_sent_empty(theirs, ours, scripted, waits):
    """It has one attempt, and the caller the failure."""
    lossy, url = await scripted(503, 503, 200)
    seen = await status_of(theirs.new_session(url), "PUT", data=in_pieces())
    server, url = await scripted(503, 503, 200)
    status = await status_of(ours.new_session(url), "PUT", data=in_pieces())

    assert [200, 503] == [seen, status]
    assert [b"a report", b"", b""] == lossy.bodies
    assert [b"a report"] == server.bodies


async def test_broken_connection_is_an_attempt(theirs, ours, scripted, waits):
    """Seen in the log; aiohttp's own resend runs all middlewares again unseen."""
    hidden, url = await scripted(hang_up, hang_up, 200)
    with pytest.raises(aiohttp.ServerDisconnectedError):
        await status_of(theirs.new_session(url))
    server, url = await scripted(hang_up, hang_up, 200)
    async with ours.new_session(url) as session:
        response = await session.get("/")

    assert [2, 3] == [len(hidden.methods), len(server.methods)]
    assert 3 == RequestLog.of(response).total_attempts


async def test_resend_starts_all_attempts_afresh(theirs, ours, scripted, waits):
    """Three attempts of a middleware are up to six requests; here one is sent again."""
    doubled, url = await scripted(503, 503, hang_up, 503, 503, 503)
    await status_of(theirs.new_session(url))
    server, url = await scripted(503, 503, hang_up, 503, 503, 503)
    status = await status_of(ours.new_session(url))

    assert [6, 4, 503] == [len(doubled.methods), len(server.methods), status]
