"""No attempt begins too long after the first one; none is cut for that."""

from __future__ import annotations

import asyncio

import pytest
from chains import Always, log_of, now, retrying, session
from circuits import breaker_of, waiting_at

from aioretry_smithy import (
    Backoff,
    RetryingRpcClient,
    RetryRule,
    RetryStopReason,
    client_decorator,
    rpc,
    smithy,
)


def starts_of(log):
    """Return when the attempts began, in seconds after the first."""
    first = log.children[0].started
    return [round(each.started - first, 3) for each in log.children]


@pytest.mark.parametrize(
    ("seconds", "starts"),
    [(0.5, [0]), (1.0, [0, 1]), (2.5, [0, 1, 2]), (3, [0, 1, 2, 3])],
)
async def test_last_attempt_begins_in_time(seconds, starts):
    """One that begins exactly then is in time; the call ends as its last attempt."""
    answers = [503] * 9
    chain = retrying(Always(Backoff.fixed(1.0)), stop_after_delay=seconds)
    log = await log_of(session(answers, chain))

    assert starts == starts_of(log)
    assert (503, RetryStopReason.STOP_AFTER_DELAY) == (
        log.response_status,
        log.stop_reason,
    )
    assert starts[-1] == now()


async def test_attempt_under_way_is_not_cut():
    """It may last as long as the call."""

    async def slow(ctx, request):
        await asyncio.sleep(4.0)
        return 503

    chain = retrying(Always(Backoff.fixed(1.0)), stop_after_delay=5.5)
    log = await log_of(session([slow, slow, slow], chain))

    assert [0, 5] == starts_of(log)
    assert 9.0 == now()


async def test_success_in_the_last_attempt_has_no_reason():
    """The limit is no failure."""
    chain = retrying(1.0, stop_after_delay=1.0)
    log = await log_of(session([503, 200], chain))

    assert (200, None) == (log.response_status, log.stop_reason)


async def test_wait_that_the_server_asks_for_counts():
    """The hint is not cut to fit."""
    answers = [(503, {"Retry-After": "3"}, b""), 200]
    chain = retrying(Always(Backoff.fixed(1.0)), stop_after_delay=2.0)
    log = await log_of(session(answers, chain))

    assert 0.0 == now()
    assert RetryStopReason.STOP_AFTER_DELAY == log.stop_reason


async def test_wait_before_the_first_attempt_does_not_count():
    """A decorator outside may have waited for a turn."""

    @client_decorator
    async def late(delegate, ctx, request):
        await asyncio.sleep(7.0)
        return await delegate.execute(ctx, request)

    chain = retrying(Always(Backoff.fixed(1.0)), stop_after_delay=1.0)
    log = await log_of(session([503, 503, 503], chain, late))

    assert [0, 1] == starts_of(log)


async def test_wait_further_in_is_not_cut():
    """At an open circuit, for the retry that was planned in time."""
    chain = waiting_at(breaker_of(2.0)), retrying(0.5, stop_after_delay=1.0)
    log = await log_of(session([503, 200], *chain))

    assert ([0, 2], 200) == (starts_of(log), log.response_status)


async def test_functions_and_smithy_strategies_have_it():
    """All retrying clients decide so."""
    calls = []
    rule = RetryRule(exceptions=[KeyError], backoff=Backoff.fixed(1.0))

    @rpc(RetryingRpcClient.new_decorator(rule, stop_after_delay=2.0), idempotent=True)
    async def fetch():
        calls.append(now())
        raise KeyError

    with pytest.raises(KeyError):
        await fetch()
    assert [0, 1, 2] == calls

    class Second:
        def compute_next_backoff_delay(self, retry_attempt):
            return 1.0

    strategy = smithy.StandardRetryStrategy(backoff_strategy=Second(), max_attempts=9)
    log = await log_of(session([503] * 9, retrying(strategy, stop_after_delay=3.0)))
    assert [0, 1, 2, 3] == starts_of(log)
    assert RetryStopReason.STOP_AFTER_DELAY == log.stop_reason


@pytest.mark.parametrize("seconds", [0, -1, float("inf"), "5", True])
def test_limit_that_is_none(seconds):
    """It is refused at once."""
    with pytest.raises(ValueError, match=r"\Astop_after_delay: .*finite and > 0"):
        retrying(Always(), stop_after_delay=seconds)


def test_word_of_another_library():
    """What backoff calls it is known."""
    with pytest.raises(ValueError, match="perhaps 'stop_after_delay'"):
        retrying(Always(), max_time=5.0)
