"""What a failure has cost the server, by what came and how long that took."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import aiohttp
import pytest
from chains import URL, after, refused, retrying, session, telling

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitBreakerRpcClient,
    CircuitBreakerStrategy,
    ConcurrencyLimit,
    ConcurrencyLimitingClient,
    RateLimit,
    RateLimitingClient,
    UnprocessedRequestError,
    client_decorator,
    rpc,
)
from aioretry_smithy._call.tries import is_slow, is_unserved

CUT = aiohttp.ServerDisconnectedError()
RESET = aiohttp.ClientOSError(104, "reset")
BUSY = {"Retry-After": "1"}


class Judging(CircuitBreakerStrategy):
    """Notes of each failure whether it is unserved, and whether it is slow."""

    def __init__(self):
        self.judged = []

    def should_report_as_success(self, ctx, cause):
        work = is_unserved(ctx.call, ctx.record, cause)
        self.judged.append((work, is_slow(ctx.call, ctx.record, cause)))


def raised_for(status, headers=None):
    """Make what a function raises for an answer."""
    return aiohttp.ClientResponseError(None, (), status=status, headers=headers)


async def judged(*answers, inside=()):
    """Return the judgements of calls, made one after another."""
    judging = Judging()
    guard = CircuitBreakerClient.new_decorator(CircuitBreaker(), judging)
    async with session(answers, *inside, guard) as client:
        for _ in answers:
            with suppress(Exception):
                await client.post(URL)
    return judging.judged


async def judged_one(answer, **settings):
    """Return the judgement of one call: whether it is unserved, and whether slow."""
    (judgement,) = await judged(answer, **settings)
    return judgement


AT_ONCE = [502, 503, CUT, RESET, ConnectionResetError(104, "reset"), raised_for(503)]


@pytest.mark.parametrize("outcome", AT_ONCE, ids=repr)
@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0.0, (True, False)), (0.999, (True, False)), (1.0, (False, True))],
)
async def test_a_second_separates_who_turned_it_away_from_who_worked(
    outcome, seconds, expected
):
    """Of a broken connection, and of the statuses of a gateway."""
    assert expected == await judged_one(after(seconds, outcome))


@pytest.mark.parametrize(
    "outcome",
    [
        500,
        501,
        504,
        408,
        429,
        (503, BUSY, b""),
        (429, BUSY, b""),
        raised_for(500),
        raised_for(503, BUSY),
        aiohttp.ClientPayloadError("cut"),
        aiohttp.ServerDisconnectedError(b"HTTP/1.1 200"),
        aiohttp.ClientOSError(101, "unreachable"),
        telling(
            aiohttp.ServerDisconnectedError(), is_throttling_error=True, retry_after=1.0
        ),
        ExceptionGroup("two", [CUT, CUT]),
    ],
    ids=repr,
)
async def test_all_else_at_once_was_served(outcome):
    """Errors of its own, answers that had begun, and those that say when to retry."""
    assert (False, False) == await judged_one(outcome)


@pytest.mark.parametrize("seconds", [0.0, 5.0])
@pytest.mark.parametrize(
    "outcome",
    [
        refused(),
        UnprocessedRequestError("not sent"),
        ExceptionGroup("one", [refused()]),
    ],
    ids=repr,
)
async def test_what_did_not_reach_the_server_is_unserved(outcome, seconds):
    """However long it took to learn that."""
    assert (True, seconds > 0) == await judged_one(after(seconds, outcome))


async def test_timeouts_are_slow():
    """However early; one of the connection is unserved all the same."""
    answers = [
        TimeoutError(),
        aiohttp.SocketTimeoutError(),
        aiohttp.ConnectionTimeoutError(),
        aiohttp.ClientOSError(110, "timed out"),
        telling(Exception("late"), is_timeout_error=True),
    ]

    expected = [(False, True), (False, True), (True, True), (False, True)]
    assert [*expected, (False, True)] == await judged(*answers)


async def test_waits_of_this_side_are_none_of_the_server():
    """For a place, then for a turn at a rate; no retrying client is there."""
    limit, rate = ConcurrencyLimit.fixed(1), RateLimit(1, 3.0)
    place = ConcurrencyLimitingClient.new_decorator(limit)
    turn = RateLimitingClient.new_decorator(rate)

    judging = Judging()
    guard = CircuitBreakerClient.new_decorator(CircuitBreaker(), judging)
    async with session([after(0.5, 503)] * 3, turn, place, guard) as client:
        await asyncio.gather(*[client.get(URL) for _ in range(3)])

    assert [(True, False)] * 3 == judging.judged


async def test_outside_of_retries_the_last_request_counts():
    """However long ago the call began."""
    answers = [503, 503]
    judging = Judging()
    guard = CircuitBreakerClient.new_decorator(CircuitBreaker(), judging)
    retry = retrying(5.0, max_total_attempts=2)
    async with session(answers, retry, guard) as client:
        await client.get(URL)

    assert [(True, False)] == judging.judged


async def test_what_a_decorator_raises_failed_now():
    """Nothing else is known of it."""

    @client_decorator
    async def translating(delegate, ctx, request):
        await asyncio.sleep(1.5)
        raise ConnectionResetError

    assert (False, True) == await judged_one(200, inside=[translating])


async def test_functions_have_what_their_cause_says():
    """They have no status of their own."""
    judging = Judging()
    causes = [CUT, refused(), raised_for(502), raised_for(500), ValueError("bad")]

    @rpc(CircuitBreakerRpcClient.new_decorator(CircuitBreaker(), judging))
    async def load():
        await asyncio.sleep(0.5)
        raise causes.pop(0)

    for _ in range(5):
        with suppress(Exception):
            await load()

    unserved, served = (True, False), (False, False)
    assert [unserved, unserved, unserved, served, served] == judging.judged
