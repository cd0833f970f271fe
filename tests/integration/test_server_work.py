"""What failures cost real servers, which answer, cut or refuse at once, or late."""

from contextlib import suppress

import aiohttp
import pytest
from chains import connected
from fault_server import OK, End, Fault, FaultServer, response

from aioretry_smithy import CircuitBreaker, CircuitBreakerClient, CircuitBreakerStrategy
from aioretry_smithy._call.tries import is_slow, is_unserved


class Judging(CircuitBreakerStrategy):
    """Notes of each failure whether it is unserved, and whether it is slow."""

    def __init__(self):
        self.judged = []

    def should_report_as_success(self, ctx, cause):
        about = ctx.call, ctx.record, cause
        self.judged.append((is_unserved(*about), is_slow(*about)))


async def judged(url, **options):
    """Return the judgements of a request."""
    judging = Judging()
    guard = CircuitBreakerClient.new_decorator(CircuitBreaker(), judging)
    async with connected(url, guard) as client:
        with suppress(aiohttp.ClientError):
            (await client.post("/", **options)).release()
    return judging.judged


def cut_after(seconds, end):
    return Fault(send=(seconds,), end=end)


@pytest.mark.slow
@pytest.mark.parametrize("end", [End.RESET, End.CLOSE])
@pytest.mark.parametrize(
    ("seconds", "expected"), [(0.2, (True, False)), (1.5, (False, True))]
)
async def test_connections_that_break(end, seconds, expected):
    """Before a byte of the answer: soon, or when the server has had its time."""
    async with FaultServer([cut_after(seconds, end)]) as server:
        assert [expected] == await judged(server.url)


@pytest.mark.slow
@pytest.mark.parametrize("status", [502, 503])
@pytest.mark.parametrize(
    ("seconds", "expected"), [(0.0, (True, False)), (1.2, (False, True))]
)
async def test_statuses_of_gateways(status, seconds, expected):
    """At once, or late."""
    async with FaultServer([Fault(send=(seconds, response(status)))]) as server:
        assert [expected] == await judged(server.url)


async def test_a_server_that_says_when_to_come_back_is_there():
    """It is busy."""
    busy = response(503, b"", "Retry-After: 1")
    async with FaultServer([Fault(send=(busy,))]) as server:
        assert [(False, False)] == await judged(server.url)


async def test_refused_connections():
    """Nobody listens there any more."""
    async with FaultServer() as server:
        url = server.url
    assert [(True, False)] == await judged(url)


async def test_timeouts_are_slow_however_short():
    """The server may be at work."""
    limit = aiohttp.ClientTimeout(total=0.2)
    async with FaultServer([Fault(send=(), end=End.STALL)]) as server:
        assert [(False, True)] == await judged(server.url, timeout=limit)


async def test_an_answer_that_had_begun_was_served():
    """Of which half a head came."""
    async with FaultServer([Fault(send=(OK[:9],), end=End.CLOSE)]) as server:
        assert [(False, False)] == await judged(server.url)
