"""Rules of circuit breakers: what they count as what, alone and in chains."""

import asyncio
import dataclasses
import warnings
from functools import partial

import aiohttp
import pytest
from calls import ended
from chains import URL, connected, retrying

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitBreakerRule,
    CircuitBreakerStrategy,
    CircuitState,
    EventCount,
    FailFastError,
    RetryRule,
    SessionBuilder,
    UnprocessedRequestError,
    new_response,
)
from aioretry_smithy.testing import ScriptedTransport

guarded = CircuitBreakerClient.new_decorator

DEFAULT = CircuitBreakerStrategy.on_server_error_status()
FAILURE = CircuitBreakerRule.failure
SUCCESS = CircuitBreakerRule.success
IGNORE = CircuitBreakerRule.ignore


class OnlyTeapots(CircuitBreakerStrategy):
    """A strategy of one's own, which takes its time."""

    async def should_report_as_success(self, ctx, cause):
        await asyncio.sleep(1.0)
        return ctx.log.response_status != 418


def verdict(strategy, *, cause=None, **outcome):
    """Ask a strategy about an outcome."""
    return strategy.should_report_as_success(ended(cause=cause, **outcome), cause)


async def counted(rules, *answers):
    """Return what a circuit breaker counted of requests with these answers."""
    breaker = CircuitBreaker("orders", minimum_request_threshold=100)
    transport = ScriptedTransport(answers)
    async with connected(None, transport, guarded(breaker, rules)) as session:
        for answer in answers:
            if isinstance(answer, Exception):
                with pytest.raises(type(answer)):
                    await session.get(URL)
            else:
                await session.get(URL)
    return breaker.event_count


def late(seconds, status=200):
    """Return an answer that takes its time."""

    async def answer(ctx, request):
        await asyncio.sleep(seconds)
        if isinstance(status, Exception):
            raise status
        return new_response(request, status)

    return answer


async def test_rule_adds_to_the_default():
    """An outcome that does not meet it is judged as without it."""
    rule = CircuitBreakerRule(statuses=[429])

    assert False is verdict(rule, status=429)
    assert True is verdict(rule, status=404)
    assert False is verdict(rule, status=503)
    assert False is verdict(rule, cause=TimeoutError())
    assert None is verdict(rule, cause=UnprocessedRequestError("busy"))


@pytest.mark.parametrize(
    ("make", "expected"), [(FAILURE, False), (SUCCESS, True), (IGNORE, None)]
)
async def test_rule_decides_by_how_it_was_made(make, expected):
    """An outcome that meets it is a failure, a success, or not counted."""
    rule = make(statuses=[404, 503], exceptions=TimeoutError)

    assert expected is verdict(rule, status=404)
    assert expected is verdict(rule, status=503)
    assert expected is verdict(rule, cause=TimeoutError())


@pytest.mark.parametrize("is_retry_safe", [True, False, None])
async def test_rule_leaves_it_to_others_whether_a_retry_is_safe(is_retry_safe):
    """The conditions are about the server, which may be down all the same."""

    class LateError(aiohttp.SocketTimeoutError):
        pass

    cause = LateError("too late")
    cause.is_retry_safe = is_retry_safe

    assert True is verdict(SUCCESS(on_timeout=True), cause=cause)
    assert True is verdict(SUCCESS(exceptions=TimeoutError), cause=cause)
    assert True is verdict(SUCCESS(exceptions=lambda cause: True), cause=cause)
    # It was sent, so this is no condition that it meets.
    assert False is verdict(IGNORE(on_unprocessed=True), cause=cause)


def test_rule_without_a_verdict_is_one_for_failures():
    """Both are the same rule, and its text is the longer form."""
    rule = CircuitBreakerRule(statuses=[429])

    assert FAILURE(statuses=[429]) == rule
    assert "CircuitBreakerRule.failure(statuses=[429])" == repr(rule)
    assert rule != SUCCESS(statuses=[429]) != IGNORE(statuses=[429])


async def test_first_rule_that_applies_decides():
    """The rules behind it are not asked, and the default judges the rest."""
    rules = (
        IGNORE(on_unprocessed=True)
        | FAILURE(statuses=[429], methods=["GET"])
        | SUCCESS(statuses=[429, 501])
        | FAILURE(status_classes=[4])
    )

    assert None is verdict(rules, cause=aiohttp.ConnectionTimeoutError())
    assert False is verdict(rules, status=429)
    assert True is verdict(rules, status=429, method="PUT")
    assert True is verdict(rules, status=501)
    assert False is verdict(rules, status=404)
    assert False is verdict(rules, status=500)
    assert True is verdict(rules, status=200)


async def test_last_member_may_be_another_strategy():
    """It judges what no rule applies to, in place of the default, plain or async."""
    rules = FAILURE(statuses=[429]) | OnlyTeapots()

    assert False is verdict(rules, status=429)
    assert False is await verdict(rules, status=418)
    assert True is await verdict(rules, status=500)


async def test_open_circuit_further_in_is_not_counted():
    """A wide class does not mean it; its own does."""
    refusal = FailFastError(CircuitBreaker("inner"))

    assert None is verdict(FAILURE(exceptions=Exception), cause=refusal)
    assert False is verdict(FAILURE(exceptions=FailFastError), cause=refusal)


def test_chain_is_flat_and_equal_to_one_with_other_brackets():
    """Brackets mean nothing, and the text is how it was written."""
    one, two, three = FAILURE(statuses=[429]), SUCCESS(statuses=[501]), IGNORE()

    assert (one | two) | three == one | (two | three)
    assert hash((one | two) | three) == hash(one | (two | three))
    assert (
        "CircuitBreakerRule.failure(statuses=[429])"
        " | CircuitBreakerRule.success(statuses=[501])"
        " | CircuitBreakerStrategy.on_server_error_status()"
    ) == repr(one | two | DEFAULT)


@pytest.mark.parametrize("other", [None, "5xx", RetryRule(statuses=[503])])
def test_only_strategies_of_circuit_breakers_make_a_chain(other):
    """Nothing else is asked."""
    rule = FAILURE(statuses=[429])
    for left in (rule, rule | rule):
        with pytest.raises(TypeError):
            left | other


@pytest.mark.parametrize(
    "front", [SUCCESS(), IGNORE(), FAILURE(statuses=[429]) | IGNORE()]
)
@pytest.mark.parametrize("behind", [FAILURE(statuses=[429]), DEFAULT])
def test_rule_behind_a_catch_all_is_warned_about(front, behind):
    """It is told where the chain is made, with the names of both."""
    with pytest.warns(RuntimeWarning) as caught:
        chain = front | behind

    (warning,) = caught
    assert __file__ == warning.filename
    assert str(warning.message).startswith(f"{behind!r} is never reached: ")
    assert repr(behind) in repr(chain)


def test_rule_behind_another_strategy_is_warned_about():
    """A strategy that is no rule decides about everything."""
    front = FAILURE(statuses=[429]) | DEFAULT
    with pytest.warns(RuntimeWarning, match="is never reached") as caught:
        front | FAILURE(statuses=[404])

    assert 1 == len(caught)


@pytest.mark.parametrize(
    "rule",
    [
        SUCCESS(methods=["POST"]),
        IGNORE(request_filter=lambda request: False),
        IGNORE(statuses=[501]),
        FAILURE(status_classes=[1, 2, 3, 4, 5]),
    ],
)
def test_rules_that_leave_something_are_not_warned_about(rule):
    """The strategy behind them has its share."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")

        assert rule | DEFAULT != rule


async def test_rules_are_taken_by_every_decorator():
    """A rule and a chain of them are strategies; the client counts by them."""
    rules = FAILURE(statuses=[429]) | SUCCESS(statuses=[501])
    lost = aiohttp.ServerDisconnectedError()

    assert EventCount(2, 2) == await counted(rules, 429, 501, 200, lost)
    assert EventCount(1, 1) == await counted(IGNORE(statuses=[429]), 429, 200, 500)


async def test_strategy_of_ones_own_in_a_chain_is_awaited():
    """The client waits for it."""
    rules = SUCCESS(statuses=[503]) | OnlyTeapots()

    assert EventCount(2, 1) == await counted(rules, 503, 418, 200)


async def test_slow_calls_open_the_circuit():
    """The rate of calls that are slower, be they successes, and of failures."""
    breaker = CircuitBreaker("orders", minimum_request_threshold=4)
    answers = [200, late(2.0), late(2.5), late(2.5), late(2.5, ConnectionResetError())]
    async with connected(
        None, ScriptedTransport(answers), guarded(breaker, FAILURE(slower_than=2.0))
    ) as session:
        for _ in range(4):
            await session.get(URL)
        assert CircuitState.CLOSED is breaker.state
        with pytest.raises(ConnectionResetError):
            await session.get(URL)

        assert CircuitState.OPEN is breaker.state
        with pytest.raises(FailFastError):
            await session.get(URL)


@pytest.mark.parametrize("is_outside", [False, True])
async def test_time_is_that_of_an_attempt_or_of_the_call(is_outside):
    """Inside a retrying client each attempt has its own, outside all are one call."""
    breaker = CircuitBreaker("orders", minimum_request_threshold=100)
    decorators = [
        guarded(breaker, FAILURE(slower_than=2.0)),
        retrying(RetryRule(statuses=[503], backoff=Backoff.fixed(1.0))),
    ]
    if is_outside:
        decorators.reverse()
    async with connected(
        None, ScriptedTransport([late(1.0, 503), late(1.0)]), *decorators
    ) as session:
        await session.get(URL)

    expected = EventCount(0, 1) if is_outside else EventCount(1, 1)
    assert expected == breaker.event_count


def test_rule_describes_itself_in_a_chain():
    """``describe()`` shows the rules in force."""
    rules = IGNORE(methods=["POST"]) | FAILURE(slower_than=2.0)
    decorator = CircuitBreakerClient.new_per_host_decorator(strategy=rules)

    assert f"strategy={rules!r}" in SessionBuilder().decorator(decorator).describe()


@pytest.mark.parametrize("make", [FAILURE, partial(dataclasses.replace, IGNORE())])
def test_backoff_is_no_argument(make):
    """A circuit breaker waits for nothing."""
    with pytest.raises(TypeError, match="backoff"):
        make(statuses=[503], backoff=Backoff.fixed(1.0))
