"""Listeners of retries beside real connections."""

import asyncio

import aiohttp
import pytest
from chains import connected, pass_on, retrying
from fault_server import End, Fault, FaultServer, response

from aioretry_smithy import RequestLog, RetryListener

CHAINS = pytest.mark.parametrize("around", [(), (pass_on,)], ids=["own", "foreign"])


class Calling(RetryListener):
    """Asks the same server for something else before each retry."""

    def __init__(self):
        self.statuses = []

    async def on_retry(self, ctx, cause, delay):
        if ctx.request.url.path == "/":
            async with self.session.get("/other") as got:
                self.statuses.append(got.status)


@CHAINS
@pytest.mark.parametrize(
    "fault",
    [
        Fault(send=(response(503, b"busy"),), end=End.KEEP),
        Fault(send=(response(503, b"x" * (4 << 20)),), end=End.KEEP),
        Fault(send=(), end=End.RESET),
    ],
    ids=["answer", "large answer", "reset"],
)
async def test_only_connection_of_a_pool_is_free(fault, around):
    """The listener may send a request through the session, as the last one is over."""
    calling, connector = Calling(), aiohttp.TCPConnector(limit=1)
    async with (
        FaultServer([fault]) as server,
        connected(
            server.url,
            *around,
            retrying(0.0, listeners=[calling]),
            *around,
            connector=connector,
        ) as session,
        asyncio.timeout(10.0),
    ):
        calling.session = session
        async with session.get("/") as got:
            log = RequestLog.of(got)

    assert ([200], 200, 2) == (calling.statuses, got.status, log.total_attempts)
