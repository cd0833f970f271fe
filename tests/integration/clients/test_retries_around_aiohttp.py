"""What tenacity and stamina do around a call of aiohttp, and what stands there."""

from __future__ import annotations

import io

import aiohttp
import pytest

pytest.importorskip("stamina")
pytest.importorskip("tenacity")

import stamina
from aiohttp import web

from aioretry_smithy import RequestLog

OURS = "in_place_of_retries_around_aiohttp"
THEIRS = ["with_tenacity_around_aiohttp", "with_stamina_around_aiohttp"]


@pytest.fixture(autouse=True)
def _no_lines_for_retries():
    """Its hooks go by what else is installed."""
    stamina.instrumentation.set_on_retry_hooks([])
    yield
    stamina.instrumentation.set_on_retry_hooks(None)


@pytest.fixture(params=[*THEIRS, OURS])
def either(request, example):
    """Each of the three in turn."""
    return example(request.param)


@pytest.fixture(params=THEIRS)
def theirs(request, example):
    """Each of the two other libraries in turn."""
    return example(request.param)


@pytest.fixture
def ours(example):
    """The functions of the same names without a library around them."""
    return example(OURS)


async def outcome_of(functions, name, url, *arguments):
    async with functions.new_session(url) as session:
        try:
            return await getattr(functions, name)(session, *arguments)
        except aiohttp.ClientResponseError as error:
            return error.status
        except (aiohttp.ClientError, ValueError) as error:
            return type(error)


async def in_pieces():
    yield b"a report"


def hang_up(request):
    request.transport.abort()
    return web.Response()


async def test_server_error_is_retried_twice(either, scripted, waits):
    """And raised after the third attempt."""
    server, url = await scripted(503, 503, 200)
    answer = await outcome_of(either, "fetch_order", url)
    failing, url = await scripted(503)
    failure = await outcome_of(either, "fetch_order", url)

    assert {"state": "done"} == answer
    assert 503 == failure
    assert [3, 3] == [len(server.methods), len(failing.methods)]


@pytest.mark.parametrize(
    ("name", "arguments", "answer", "requests"),
    [
        # A mistake of the caller is no failure of the server.
        ("fetch_order", (), 404, [3, 1]),
        # The server may have carried it out.
        ("place_order", (b"an order",), hang_up, [3, 1]),
        ("place_order", (b"an order",), 503, [3, 1]),
        # aiohttp sends each attempt of the one twice.
        ("fetch_order", (), hang_up, [6, 3]),
    ],
    ids=["404", "POST that breaks off", "POST and 503", "resend"],
)
async def test_requests_that_are_not_made(
    theirs, ours, scripted, waits, name, arguments, answer, requests
):
    """What cannot help, or may do harm, is not sent again."""
    servers = []
    for functions in (theirs, ours):
        server, url = await scripted(answer)
        await outcome_of(functions, name, url, *arguments)
        servers.append(server)

    assert requests == [len(server.methods) for server in servers]


@pytest.mark.parametrize("new_body", [lambda: io.BytesIO(b"a report"), in_pieces])
async def test_body_is_sent_whole_or_not_again(theirs, ours, scripted, waits, new_body):
    """Not empty, with a success for an answer."""
    lossy, url = await scripted(503, 503, 200)
    seen = await outcome_of(theirs, "upload", url, new_body())
    server, url = await scripted(503, 503, 200)
    await outcome_of(ours, "upload", url, new_body())

    assert seen is None  # no failure
    assert [b"a report", b"", b""] == lossy.bodies
    assert {b"a report"} == {*server.bodies}


async def test_file_is_sent_again(theirs, ours, scripted, waits, tmp_path):
    """It is not closed by the first attempt."""
    path = tmp_path / "report"
    path.write_bytes(b"a report")
    closed, url = await scripted(503, 503, 200)
    with path.open("rb") as file:
        await outcome_of(theirs, "upload", url, file)
    server, url = await scripted(503, 503, 200)
    with path.open("rb") as file:
        sent = await outcome_of(ours, "upload", url, file)

    assert 1 == closed.bodies.count(b"a report")
    assert sent is None
    assert [b"a report"] * 3 == server.bodies


async def test_server_is_given_the_time_it_asks_for(theirs, ours, scripted, waits):
    """Retry-After is heard."""

    def throttled(request):
        return web.Response(status=503, headers={"Retry-After": "7"})

    for functions in (theirs, ours):
        _, url = await scripted(throttled, 200)
        await outcome_of(functions, "fetch_order", url)

    assert waits[0] <= 1.2
    assert pytest.approx(7.0, abs=0.1) == waits[1]


async def test_failure_has_the_log_of_the_call(ours, scripted, waits):
    """The error that the session raises for a status leads to it."""
    _, url = await scripted(503)
    async with ours.new_session(url) as session:
        with pytest.raises(aiohttp.ClientResponseError) as caught:
            await ours.fetch_order(session)

    assert 3 == RequestLog.of(caught.value).total_attempts
