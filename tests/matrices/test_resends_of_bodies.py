"""A body goes out again whole and identical, or not at all."""

from __future__ import annotations

import contextlib
from itertools import cycle

import aiohttp
import pytest
from body_kinds import KINDS, Content
from fault_server import End, Fault, Read, cut
from parity import BARE, CHAINS, each, stale_pool, status_of
from pool_server import CONTINUE, RESET

from aioretry_smithy import RequestLog

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
