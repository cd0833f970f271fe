"""No answer keeps its connection or place from a further request of its call."""

import asyncio

import aiohttp
import pytest
from aiohttp import ClientTimeout
from chains import SAFELY, connected, retrying
from races import hedging
from stream_server import StreamServer

from aioretry_smithy import (
    ConcurrencyLimit,
    ConcurrencyLimitingClient,
    RefreshingClient,
    RequestLog,
    RetryBudget,
)

PATIENCE = 3.0
BAD = b"HTTP/1.1 503 Busy\r\nContent-Length: 7\r\n\r\n"
DENIED = BAD.replace(b"503", b"401")
GOOD = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood"


class Stalling:
    """Answers the first requests badly, and never sends the rest of their bodies.

    Not before all of them are there: the second request of a quick call is no first.
    """

    def __init__(self, bad, first):
        self.bad, self.first = bad, first
        self.asked = 0
        self._all_asked = asyncio.Event()
        self._server = StreamServer(self._serve)

    async def __aenter__(self):
        await self._server.__aenter__()
        self.url = self._server.url()
        return self

    async def __aexit__(self, *error):
        await self._server.__aexit__(*error)

    async def _serve(self, reader, writer):
        while True:
            await reader.readuntil(b"\r\n\r\n")
            self.asked += 1
            is_first = self.asked <= self.first
            if self.asked == self.first:
                self._all_asked.set()
            await self._all_asked.wait()
            writer.write(self.bad if is_first else GOOD)
            await writer.drain()


async def fetch():
    return "a token"


def limited(delegate):
    return hedging(9.0, limiter=RetryBudget())(delegate)


REFRESHING = RefreshingClient.new_decorator(fetch)
RETRYING = retrying(SAFELY)
CHAINS = {
    "hedging": (BAD, [hedging(9.0)]),
    "hedging late": (BAD, [hedging(0.02)]),
    "hedging with a limiter": (BAD, [limited]),
    "hedging in retries": (BAD, [hedging(9.0), RETRYING]),
    "retrying": (BAD, [RETRYING]),
    "refreshing": (DENIED, [REFRESHING]),
    "refreshing in hedges": (DENIED, [REFRESHING, hedging(9.0)]),
    "refreshing in retries": (DENIED, [REFRESHING, RETRYING]),
}


@pytest.mark.parametrize(("bad", "chain"), CHAINS.values(), ids=CHAINS)
async def test_ten_calls_over_ten_connections_do_not_wait_for_themselves(bad, chain):
    """Each gives back that of its bad answer before it sends another request."""
    connector = aiohttp.TCPConnector(limit=10)
    settings = {"connector": connector, "timeout": ClientTimeout(PATIENCE)}
    async with (
        Stalling(bad, 10) as server,
        connected(server.url, *chain, **settings) as client,
    ):

        async def call():
            async with client.get("/") as response:
                return response.status, await response.read()

        answers = await asyncio.gather(*(call() for _ in range(10)))

        assert [(200, b"good")] * 10 == answers
        assert set() == connector._acquired


@pytest.mark.parametrize(("bad", "chain"), CHAINS.values(), ids=CHAINS)
async def test_one_place_is_enough(bad, chain):
    """It is free again before the further request waits for one."""
    limit = ConcurrencyLimit.fixed(1)
    limiting = ConcurrencyLimitingClient.new_decorator(limit, timeout=PATIENCE)
    async with Stalling(bad, 1) as server:
        timeout = ClientTimeout(2 * PATIENCE)
        chain = limiting, *chain
        async with connected(server.url, *chain, timeout=timeout) as client:
            async with client.get("/") as response:
                assert (200, b"good") == (response.status, await response.read())
            log = RequestLog.of(response)

    assert 0 == limit.in_flight
    # One that waits for itself ends when the limit does, or the deadline.
    assert log.duration < PATIENCE * 0.9
