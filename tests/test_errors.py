"""Classes of errors, and their texts."""

from __future__ import annotations

import asyncio
import copy
import pickle
import threading

import aiohttp
import pytest
from chains import URL, session

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitBreakerListener,
    CircuitState,
    ConcurrencyLimit,
    ConcurrencyLimitError,
    ConcurrencyLimitingClient,
    FailFastError,
    RateLimit,
    RateLimitError,
    RateLimitingClient,
    RequestLog,
    ResponseTimeoutError,
    UnprocessedRequestError,
)
from aioretry_smithy._errors import bad_argument, is_finite


@pytest.mark.parametrize(
    "error", [UnprocessedRequestError, FailFastError, ResponseTimeoutError]
)
def test_errors_are_those_of_aiohttp(error):
    """``except aiohttp.ClientError`` around existing code goes on working."""
    assert issubclass(error, aiohttp.ClientError)


def test_the_deadline_is_a_timeout():
    """``except asyncio.TimeoutError`` around existing code goes on working."""
    assert issubclass(ResponseTimeoutError, asyncio.TimeoutError)
    assert issubclass(ResponseTimeoutError, aiohttp.ServerTimeoutError)


@pytest.mark.parametrize(
    ("retry_in", "message"),
    [
        (None, "circuit breaker 'shop' is open"),
        (2.5, "circuit breaker 'shop' is open, next trial in 2.500 s"),
        (0.0, "circuit breaker 'shop' is open, next trial in 0.000 s"),
    ],
)
def test_an_open_circuit_says_when_it_may_be_tried(retry_in, message):
    """The error names the circuit and when to come back."""
    breaker = CircuitBreaker("shop")
    error = FailFastError(breaker, retry_in)

    assert message == str(error)
    assert breaker is error.circuit_breaker
    assert retry_in == error.retry_in


def test_half_open_circuit_says_that_it_is_tried():
    """Also when the trial is over by then, and in another process."""
    breaker = CircuitBreaker("shop")
    breaker.enter_state(CircuitState.HALF_OPEN)
    breaker.try_request()
    error = FailFastError(breaker, 2.5)
    breaker.enter_state(CircuitState.CLOSED)

    expected = "circuit breaker 'shop' is half open: a trial is under way"
    for each in error, copy.copy(error), pickle.loads(pickle.dumps(error)):
        assert f"{expected}, next trial in 2.500 s" == str(each)


def test_bad_arguments_have_one_form():
    """Name, value and condition stand where they always stand."""
    error = bad_argument("delay", "1", "a number")

    assert isinstance(error, ValueError)
    assert "delay: '1' (expected: a number)" == str(error)


@pytest.mark.parametrize(
    ("value", "finite"),
    [
        (0, True),
        (-1.5, True),
        (1e308, True),
        (10**400, False),
        (float("inf"), False),
        (float("nan"), False),
        (True, False),
        ("1", False),
        (None, False),
    ],
)
def test_finite_numbers_are_told_from_the_rest(value, finite):
    """Any argument gets an answer without an error."""
    assert finite is is_finite(value)


class Locked(CircuitBreakerListener):
    """A listener that cannot be pickled."""

    def __init__(self):
        self.lock = threading.Lock()


def open_circuit():
    """Refuse by a circuit that has functions and locks of the user's."""

    class Window(Backoff):
        def next_delay(self, num_attempts_so_far):
            return 5.0

    breaker = CircuitBreaker(
        "shop",
        circuit_open_window=Window(),
        listeners=[Locked()],
        clock=lambda: 0.0,
    )
    breaker.enter_state(CircuitState.OPEN)
    return breaker, CircuitBreakerClient.new_decorator(breaker)


def full_limit():
    """Refuse by a limit of the user's own."""

    class Own(ConcurrencyLimit):
        lock = threading.Lock()

        def __init__(self):
            super().__init__(name="shop")
            self.asked = lambda: 1

        @property
        def limit(self):
            return 0

    limit = Own()
    return limit, ConcurrencyLimitingClient.new_decorator(limit, timeout=0.0)


def dear_rate():
    """Refuse by a rate with a function of the user's."""
    limit = RateLimit(1, cost=lambda ctx, request: 2)
    return limit, RateLimitingClient.new_decorator(limit)


async def refusal_of(decorator):
    """Return what a session with this decorator refuses a request with."""
    async with session([200], decorator) as client:
        with pytest.raises(aiohttp.ClientError) as refused:
            await client.get(URL)
    return refused.value


REFUSING = [open_circuit, full_limit, dear_rate]


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("make", REFUSING)
async def test_refusal_can_be_pickled_whatever_has_refused(make, protocol):
    """A worker process reports it, and keeps what has refused."""
    refuser, decorator = make()
    error = await refusal_of(decorator)
    error.add_note("of order 7")
    other = pickle.loads(pickle.dumps(error, protocol))

    assert type(error) is type(other)
    assert str(error) == str(other)
    assert error.__notes__ == other.__notes__
    assert repr(refuser) == repr(other.args[0])


async def test_pickled_refusals_say_what_the_errors_say():
    """In figures, and with a snapshot of what has refused."""
    circuit, limit, rate = [
        pickle.loads(pickle.dumps(await refusal_of(make()[1]))) for make in REFUSING
    ]

    assert (FailFastError, ConcurrencyLimitError, RateLimitError) == (
        *map(type, (circuit, limit, rate)),
    )
    assert ("shop", CircuitState.OPEN, None) == (
        circuit.circuit_breaker.name,
        circuit.circuit_breaker.state,
        circuit.circuit_breaker.event_count.failure_rate,
    )
    assert 5.0 == circuit.retry_in
    assert ("shop", 0, 0, 0) == (
        limit.limit.name,
        limit.limit.limit,
        limit.limit.in_flight,
        limit.limit.pending,
    )
    assert (0.0, 0) == (limit.waited, limit.pending)
    assert (0, 2, 1, False) == (
        rate.limit.pending,
        rate.cost,
        rate.burst,
        rate.is_retry_safe,
    )


def test_snapshot_leaves_out_what_cannot_be_asked():
    """A function of the user's that raises takes no error away."""

    def broken():
        raise LookupError("no such setting")

    limit = ConcurrencyLimit.fixed(broken, name="shop")
    error = ConcurrencyLimitError(limit, 0.5, 3)
    other = pickle.loads(pickle.dumps(error))

    assert str(error) == str(other)
    assert not hasattr(other.limit, "limit")
    assert 0 == other.limit.in_flight


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
@pytest.mark.parametrize("make", REFUSING)
async def test_copied_refusal_has_what_has_refused(make, copied):
    """In the same process there is nothing to leave behind."""
    refuser, decorator = make()
    error = await refusal_of(decorator)
    other = copied(error)

    assert type(error) is type(other)
    assert str(error) == str(other)
    assert refuser is other.args[0]
    assert vars(error).keys() == vars(other).keys()
    assert RequestLog.of(error) is RequestLog.of(other)
