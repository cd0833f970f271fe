"""A body goes out again whole and identical, or not at all."""

from __future__ import annotations

import asyncio
import contextlib
import io
from itertools import cycle

import aiohttp
import pytest
from body_kinds import KINDS, Content
from fault_server import End, Fault, Read, cut
from parity import BARE, CHAINS, NEVER, RETRYING, each, stale_pool, status_of
from pool_server import CONTINUE, RESET

from aioretry_smithy import RequestLog

BROKEN = (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError)
MEGABYTE = 1 << 20
ONCE = {
    "``FormData`` with an async generator",
    "async generator",
    "``aiohttp.StreamReader``",
    "``asyncio.StreamReader``",
    "pipe",
    "``AsyncIterablePayload``",
}
"""What can be read once."""

UNKNOWN = {"``Payload`` subclass of your own", "async iterable that starts afresh"}
"""What a bare session believes to be harmless, on some aiohttp, and we do not."""


@pytest.fixture(scope="module")
def content_path(tmp_path_factory):
    """A file to send."""
    path = tmp_path_factory.mktemp("bodies") / "file.txt"
    path.write_text("0123456789" * 3000)
    return path


async def put(make, path, kind, how=RESET):
    """Send a body on a stale connection; return how it ended, and what arrived."""
    with contextlib.ExitStack() as stack:
        content = Content(path.read_bytes(), path, stack)
        async with stale_pool(make, how=how) as (server, session):
            options = KINDS[kind](content)
            status = await status_of(session.put("/x", **options))
            return status, [bytes(each.body) for each in server.to("/x")]


@pytest.mark.parametrize(
    ("kind", "chain"),
    [
        *((kind, "standard") for kind in KINDS),
        *zip(KINDS, cycle([name for name in CHAINS if name != "standard"])),
    ],
)
async def test_body_is_sent_again_whole_or_not_at_all(kind, chain, content_path):
    """Nearly every kind that a bare session saves, and some that it cuts."""
    status, bodies = await put(CHAINS[chain], content_path, kind)

    assert 1 == len({*bodies})
    if kind in ONCE | UNKNOWN:
        assert (None, 1) == (status, len(bodies))
    else:
        assert (200, 2) == (status, len(bodies))


@pytest.mark.parametrize("kind", sorted(ONCE))
async def test_what_is_sent_once_is_not_saved_by_a_bare_session(kind, content_path):
    """It fails there too, or what arrives is cut."""
    status, bodies = await put(aiohttp.ClientSession, content_path, kind)

    assert status is None or len({*bodies}) > 1


@each(RETRYING)
async def test_reason_is_the_body(make):
    """A call whose body is spent says so."""

    async def chunks():
        yield b"once"

    async with stale_pool(make) as (server, session):
        with pytest.raises(BROKEN) as e:
            await session.put("/x", data=chunks())

    assert "body_not_replayable" == RequestLog.of(e.value).stop_reason
    assert [b"once"] == server.bodies


@each(CHAINS)
@pytest.mark.parametrize("read", [Read.HEAD, MEGABYTE, Read.WHOLE])
@pytest.mark.parametrize("end", [End.RESET, End.CLOSE])
async def test_large_upload_is_sent_again(read, end, make):
    """Wherever it broke, its eight megabytes arrive."""
    body = bytes(range(256)) * (8 * MEGABYTE // 256)
    async with stale_pool(make, how=cut(read=read, end=end)) as (server, session):
        status = await status_of(session.put("/x", data=io.BytesIO(body)))

    assert 200 == status
    assert body == server.bodies[-1]
    assert all(each == body for each in server.bodies)
    assert 2 == len(server.to("/x"))


EXPECTING = {
    "before a 100": cut(read=Read.HEAD, end=End.RESET),
    "after a 100": cut(CONTINUE, read=Read.HEAD, end=End.RESET),
    "closed after a 100": cut(CONTINUE, read=Read.HEAD, end=End.CLOSE),
    "after the body": Fault(Read.WHOLE, end=End.RESET, send=()),
}


@each(BARE | CHAINS)
@pytest.mark.parametrize("how", EXPECTING.values(), ids=EXPECTING)
async def test_body_that_waits_for_leave_does_not_hang(how, make):
    """``expect100=True`` waits again."""
    async with stale_pool(make, how=how) as (server, session):
        call = session.put("/x", data=b"whole", expect100=True)
        status = await status_of(call)

    expected = [request.header("Expect") for request in server.to("/x")]
    assert 200 == status
    assert [b"100-continue"] * 2 == expected
    assert b"whole" == server.bodies[-1]


@pytest.mark.skipif(not hasattr(aiohttp, "UploadTracker"), reason="a newer aiohttp")
@each(CHAINS)
async def test_tracked_upload_is_sent_again_by_aiohttp(make):
    """As by a bare session, and without a log."""
    tracker = aiohttp.UploadTracker()
    options = {"data": b"whole", "upload_tracker": tracker}
    async with (
        stale_pool(make) as (server, session),
        session.put("/x", **options) as got,
    ):
        log = RequestLog.of(got)

    assert 200 == got.status
    assert [b"whole", b"whole"] == server.bodies
    assert 1 == log.total_attempts


@each(NEVER)
async def test_what_the_caller_changes_meanwhile_does_not_go_out(make):
    """A body is fixed when it is first sent."""
    body = bytearray(b"first")
    broken = asyncio.Event()
    how = Fault(send=(broken,), end=End.RESET)
    async with stale_pool(make, how=how) as (server, session):
        call = asyncio.create_task(status_of(session.put("/x", data=body)))
        await server.arrived(1)
        body[:] = b"other"
        broken.set()
        status = await call

    assert 200 == status
    assert [b"first", b"first"] == server.bodies
