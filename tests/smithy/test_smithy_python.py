"""smithy-python's strategies in our client, and ours where it expects its own."""

from __future__ import annotations

import asyncio
import copy
import pickle
from typing import Any

import aiohttp
import pytest
from chains import retrying_session, status_and_log

from aioretry_smithy import Backoff, RequestLog, RetryStopReason, smithy

# It needs Python 3.12.
exceptions = pytest.importorskip("smithy_core.exceptions")
theirs = pytest.importorskip("smithy_core.aio.retries")
interfaces = pytest.importorskip("smithy_core.interfaces.retries")
aio_interfaces = pytest.importorskip("smithy_core.aio.interfaces.retries")
smithy_retries = pytest.importorskip("smithy_core.retries")

OURS = [
    smithy.SimpleRetryStrategy,
    smithy.StandardRetryStrategy,
    smithy.AdaptiveRetryStrategy,
]


async def answer_and_log(
    answers: list[Any], strategy: Any, **settings: Any
) -> tuple[int, RequestLog]:
    """Make one call that gets *answers* and asks *strategy*."""
    return await status_and_log(retrying_session(answers, strategy, **settings))


@pytest.mark.parametrize("name", ["SimpleRetryStrategy", "StandardRetryStrategy"])
async def test_their_strategies_retry_what_failed(name):
    """Statuses, timeouts and connections, which their own clients give up on."""
    strategy = getattr(theirs, name)(max_attempts=5)
    answers = [503, 429, aiohttp.ServerDisconnectedError(), TimeoutError(), 200]
    status, log = await answer_and_log(answers, strategy)

    assert (200, 5) == (status, log.total_attempts)


async def test_their_quota_pays_and_gets_back():
    """The error that they are shown tells throttling from the rest."""
    quota = smithy_retries.StandardRetryQuota(initial_capacity=100)
    strategy = theirs.StandardRetryStrategy(retry_quota=quota)
    await answer_and_log([503, 429, 200], strategy)

    assert 100 - 14 == quota.available_capacity


@pytest.mark.parametrize(
    ("answers", "capacity", "reason"),
    [
        ([503, 503, 503], 100, RetryStopReason.MAX_TOTAL_ATTEMPTS),
        ([503], 13, RetryStopReason.LIMITER),
        ([404], 100, RetryStopReason.NO_RETRY),
        ([501], 100, RetryStopReason.NO_RETRY),
    ],
)
async def test_their_refusal_ends_in_the_last_response(answers, capacity, reason):
    """Their own RetryError is understood, and why it was raised."""
    quota = smithy_retries.StandardRetryQuota(initial_capacity=capacity)
    strategy = theirs.StandardRetryStrategy(retry_quota=quota)
    status, log = await answer_and_log(answers, strategy)

    assert (answers[-1], reason) == (status, log.stop_reason)
    assert isinstance(log.retry_error, exceptions.RetryError)
    assert isinstance(log.retry_error.__cause__, smithy.CallError)


async def test_their_refusal_is_raised_on_request():
    """Their users catch their class."""
    strategy = theirs.SimpleRetryStrategy(max_attempts=1)
    with pytest.raises(exceptions.RetryError):
        await answer_and_log([503], strategy, raise_retry_error=True)


async def test_their_strategy_clamps_the_hint():
    """It reads it from the error; five seconds more than its own delay at most."""
    strategy = theirs.StandardRetryStrategy(
        backoff_strategy=smithy.ExponentialRetryBackoffStrategy(
            backoff_scale_value=1.0,
            jitter_type=smithy.ExponentialBackoffJitterType.NONE,
        )
    )
    answer = (503, {"Retry-After": "30"}, b"")
    _, log = await answer_and_log([answer, 200], strategy, use_retry_after=False)

    assert 6.0 == log.children[0].delay


@pytest.mark.parametrize("kind", OURS)
async def test_ours_are_strategies_to_them(kind):
    """Their resolver takes one as it is, and copies of settings share it."""
    strategy = kind()
    resolver = theirs.RetryStrategyResolver()

    assert isinstance(strategy, aio_interfaces.RetryStrategy)
    assert strategy is await resolver.resolve_retry_strategy(retry_strategy=strategy)
    assert strategy is copy.deepcopy(strategy)


def test_our_error_has_all_that_they_ask_for():
    """It passes the test by which their strategies tell what can be retried."""
    assert isinstance(smithy.CallError(), interfaces.ErrorRetryInfo)


@pytest.mark.parametrize("kind", OURS)
async def test_our_refusal_is_theirs_too(kind):
    """Their loops catch their own class of errors, and read the hint in it."""
    strategy = kind(max_attempts=1)
    token = await strategy.acquire_initial_retry_token(token_scope="orders")
    with pytest.raises(exceptions.RetryError) as caught:
        await strategy.refresh_retry_token_for_retry(
            token_to_renew=token, error=exceptions.ClientTimeoutError()
        )

    assert isinstance(caught.value, smithy.RetryError)
    assert caught.value.retry_after is None


def test_refusal_that_is_both_can_be_pickled():
    """It crosses processes like any exception."""
    refusal = pickle.loads(pickle.dumps(smithy.RetryError("no", retry_after=1.5)))

    assert isinstance(refusal, exceptions.RetryError)
    assert ("no", 1.5) == (str(refusal), refusal.retry_after)


@pytest.mark.parametrize("kind", OURS)
async def test_ours_work_in_a_loop_as_their_pipeline_has_it(kind):
    """Token, delay, attempt, refresh, success, with their errors."""
    strategy = kind()
    failures = [
        exceptions.ClientTimeoutError(),
        exceptions.CallError(fault="server", message="busy", is_retry_safe=True),
    ]
    token = await strategy.acquire_initial_retry_token(token_scope=None)
    for failure in failures:
        token = await strategy.refresh_retry_token_for_retry(
            token_to_renew=token, error=failure
        )
        await asyncio.sleep(token.retry_delay)
    await strategy.record_success(token=token)

    assert 2 == token.retry_count


async def test_our_backoff_works_in_their_strategies():
    """Also its end: that is a refusal to them as well."""
    backoff = Backoff.fixed(1.5).with_max_attempts(2)
    strategy = theirs.SimpleRetryStrategy(backoff_strategy=smithy.from_backoff(backoff))
    _, log = await answer_and_log([503, 503], strategy)

    assert [1.5, None] == [child.delay for child in log.children]
    assert RetryStopReason.BACKOFF_EXHAUSTED == log.stop_reason
    assert isinstance(log.retry_error, exceptions.RetryError)
