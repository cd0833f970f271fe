"""Answers that say when to come back are no outage."""

from __future__ import annotations

import asyncio

import pytest
from chains import SAFELY, URL, now, retrying, session

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitBreakerRule,
    CircuitBreakerStrategy,
    CircuitState,
    EventCount,
    RetryBudget,
    RetryBudgetListener,
    RetryingRpcClient,
    RetryRule,
    SessionBuilder,
    rpc,
)
from aioretry_smithy.testing import ScriptedTransport

BUT_THROTTLING = CircuitBreakerStrategy.on_server_error_status(count_throttling=False)


class BusyError(Exception):
    """A complaint with Smithy's retry information."""

    def __init__(self, **information):
        super().__init__("busy")
        vars(self).update(information)


THROTTLED = [
    (429, {"Retry-After": "1"}, b""),
    (503, {"Retry-After": "0"}, b""),
    (503, {"Retry-After": "Fri, 31 Dec 1999 23:59:59 GMT"}, b""),
    (429, {"x-amz-retry-after": "10"}, b""),
    BusyError(is_throttling_error=True, retry_after=1.0),
    ExceptionGroup("one", [BusyError(is_throttling_error=True, retry_after=1.0)]),
]

FAILED = [
    503,
    (503, {"Retry-After": "soon"}, b""),
    (500, {"Retry-After": "1"}, b""),
    (502, {"Retry-After": "1"}, b""),
    (504, {"Retry-After": "1"}, b""),
    BusyError(is_throttling_error=True),
    BusyError(retry_after=1.0),
]


async def outcome(client):
    try:
        return (await client.get(URL)).status
    except Exception as error:
        return error


async def failures_in_a_row(*answers):
    """Return what a budget counts, of calls one after another."""
    budget = RetryBudget(brake_after=None)
    decorator = retrying(SAFELY, max_total_attempts=1, limiter=budget)
    async with session(answers, decorator) as client:
        for _ in answers:
            await outcome(client)
    return budget.failures_in_a_row


async def events(strategy, *answers):
    """Return what a circuit breaker counts, of calls one after another."""
    breaker = CircuitBreaker()
    guard = CircuitBreakerClient.new_decorator(breaker, strategy)
    async with session(answers, guard) as client:
        for _ in answers:
            await outcome(client)
    return breaker.event_count


@pytest.mark.parametrize("answer", THROTTLED, ids=repr)
async def test_they_do_not_press_the_brake(answer):
    """Neither do they let it go: they are nothing to it."""
    assert 0 == await failures_in_a_row(answer)

    assert 3 == await failures_in_a_row(503, answer, 503, answer, 503)


@pytest.mark.parametrize("answer", FAILED, ids=repr)
async def test_other_failures_press_it(answer):
    """Without a time to come back, or with a status that does not throttle."""
    assert 1 == await failures_in_a_row(answer)


@pytest.mark.parametrize("answer", THROTTLED, ids=repr)
async def test_a_circuit_breaker_may_count_them_as_nothing(answer):
    """Not as a success, not as a failure."""
    assert EventCount(1, 0) == await events(BUT_THROTTLING, answer, 200)


@pytest.mark.parametrize("answer", FAILED, ids=repr)
async def test_it_counts_other_failures(answer):
    """As by default."""
    assert EventCount(0, 1) == await events(BUT_THROTTLING, answer)


async def test_it_counts_them_by_default():
    """By their status."""
    throttled, busy = THROTTLED[:2]

    assert EventCount(1, 1) == await events(None, throttled, busy)


async def test_a_429_that_does_not_say_when_is_a_success():
    """As by default: the server works."""
    assert EventCount(1, 0) == await events(BUT_THROTTLING, 429)


async def test_rules_may_stand_before_it():
    """It is then the last of them."""
    rules = CircuitBreakerRule.failure(statuses=[404]) | BUT_THROTTLING

    assert EventCount(1, 1) == await events(rules, 404, *THROTTLED, 200)


async def test_a_trial_that_is_throttled_gives_its_place_back():
    """The next request is the trial, and closes the circuit."""
    breaker = CircuitBreaker()
    breaker.enter_state(CircuitState.HALF_OPEN)
    guard = CircuitBreakerClient.new_decorator(breaker, BUT_THROTTLING)
    async with session([THROTTLED[0], 200], guard) as client:
        assert 429 == await outcome(client)
        assert CircuitState.HALF_OPEN == breaker.state

        assert 200 == await outcome(client)
        assert CircuitState.CLOSED == breaker.state


def test_a_setting_that_is_no_bool_is_refused():
    """Since 0 may be meant as a number."""
    with pytest.raises(ValueError, match=r"count_throttling: 0 \(expected: True or"):
        CircuitBreakerStrategy.on_server_error_status(count_throttling=0)


def test_there_is_one_strategy_of_each_kind():
    """And each says how to make it."""
    assert BUT_THROTTLING is CircuitBreakerStrategy.on_server_error_status(
        count_throttling=False
    )
    assert "CircuitBreakerStrategy.on_server_error_status(count_throttling=False)" == (
        repr(BUT_THROTTLING)
    )


@pytest.mark.parametrize("status", [429, 503])
async def test_the_budget_of_the_standard_chain_pays_for_ten(status):
    """And for no more; the circuit stays closed."""
    refused = []

    class Listener(RetryBudgetListener):
        def on_retry_refused(self, budget, ctx):
            refused.append((budget.tokens, budget.failures_in_a_row))

    answers = [*[(status, {"Retry-After": "1"}, b"")] * 12, *[200] * 10]
    builder = SessionBuilder.standard(
        inside=[ScriptedTransport(answers)],
        limiter=RetryBudget.per_host(listeners=[Listener()]),
        strategy=RetryRule(statuses=[429, 503], backoff=Backoff.fixed(0.5)),
    )
    async with builder.build() as client:
        answered = await asyncio.gather(*[outcome(client) for _ in range(12)])

    assert 10 * [200] + 2 * [status] == answered
    assert [(0.0, 0)] * 2 == refused


async def test_functions_say_it_by_an_exception():
    """With Smithy's retry information, which the wait goes by as well."""
    budget = RetryBudget(brake_after=1)
    outcomes = iter([BusyError(is_throttling_error=True, retry_after=2.0), None])
    rule = RetryRule(exceptions=[BusyError], backoff=Backoff.without_delay())

    @rpc(RetryingRpcClient.new_decorator(rule, limiter=budget))
    async def load():
        if (error := next(outcomes)) is not None:
            raise error
        return now()

    assert 2.0 == await load()
