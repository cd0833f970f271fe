"""Classes of errors, their texts, and no secrets in them."""

import copy
import functools
import logging
import pickle
import threading
import time
from datetime import timedelta

import aiohttp
import pytest
from chains import URL, raises_exactly, response_of, retrying, session
from multidict import CIMultiDict

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
    HttpRequest,
    RateLimit,
    RateLimitError,
    RateLimitingClient,
    RequestLog,
    ResponseTimeoutError,
    RetryConfig,
    RetryDecision,
    RetryingClient,
    RetryLimiter,
    RetryStrategy,
    SessionBuilder,
    UnprocessedRequestError,
    decorate,
    new_response,
    smithy,
    undecorate,
    unwrap,
)
from aioretry_smithy._errors import bad_argument, is_finite
from aioretry_smithy.testing import ScriptedTransport


@pytest.mark.parametrize(
    "error", [UnprocessedRequestError, FailFastError, ResponseTimeoutError]
)
def test_errors_are_those_of_aiohttp(error):
    """``except aiohttp.ClientError`` around existing code goes on working."""
    assert issubclass(error, aiohttp.ClientError)


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
        "shop", circuit_open_window=Window(), listeners=[Locked()], clock=lambda: 0.0
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


SECRET = "hunter2"
REQUEST = HttpRequest("GET", f"http://me:{SECRET}@localhost/?token={SECRET}")


class Vault:
    """A class of the user's own whose description says it all."""

    def __repr__(self):
        return f"Vault({SECRET})"


class VaultError(Exception):
    def __repr__(self):
        return f"VaultError({SECRET})"


async def response():
    return new_response(REQUEST, headers={"Set-Cookie": f"sid={SECRET}"})


async def status_error():
    info = aiohttp.RequestInfo(
        REQUEST.url, "GET", CIMultiDict(Authorization=SECRET), REQUEST.url
    )
    return aiohttp.ClientResponseError(info, (), status=500)


async def of(value):
    return value


SOURCES = {
    "response": response,
    "error of a status": status_error,
    "text": lambda: of(f"https://me:{SECRET}@localhost/"),
    "text without a scheme": lambda: of(f"me:{SECRET}@localhost:8080"),
    "query": lambda: of(f"/orders?token={SECRET}"),
    "bytes": lambda: of(f"password={SECRET}".encode()),
    "URL": lambda: of(REQUEST.url),
    "headers": lambda: of(CIMultiDict(Authorization=SECRET)),
    "dictionary": lambda: of({"X-Api-Key": SECRET}),
    "pairs": lambda: of([("Cookie", SECRET)]),
    "own class": lambda: of(Vault()),
    "list of own class": lambda: of([Vault()]),
    "own error": lambda: of(VaultError(SECRET)),
    "error": lambda: of(ValueError(f"no answer from https://me:{SECRET}@localhost/")),
    "partial": lambda: of(functools.partial(print, Vault())),
    "method": lambda: of(Vault().__repr__),
    "deep": lambda: of([[[[[Vault()]]]]]),
}
each_source = pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)


@each_source
async def test_what_has_no_log_is_named_by_its_class(source):
    """What a program holds by mistake may be the response of another session."""
    given = await source()
    with pytest.raises(LookupError) as caught:
        RequestLog.of(given)

    assert SECRET not in str(caught.value)
    assert type(given).__name__ in str(caught.value)


@each_source
@pytest.mark.parametrize(
    "function",
    [decorate, undecorate, functools.partial(unwrap, client=RetryingClient)],
    ids=["decorate", "undecorate", "unwrap"],
)
async def test_what_is_no_session_is_named_by_its_class(source, function):
    """It may be the URL of the server, or the response."""
    given = await source()
    with pytest.raises(ValueError, match=r"^session: ") as caught:
        function(given)

    assert SECRET not in str(caught.value)


@each_source
async def test_other_arguments_are_named_by_their_class(source):
    """Each takes what its name says, and may get anything."""
    given = await source()
    calls = [
        lambda: RetryConfig(given),
        lambda: RetryingClient.new_decorator(RetryStrategy.never(), limiter=given),
        lambda: SessionBuilder().decorator(given),
        lambda: SessionBuilder().response_timeout(given),
        lambda: new_response(REQUEST, given),
        lambda: RetryDecision.retry(given),
        lambda: ScriptedTransport(given),
    ]
    for call in calls:
        try:
            call()
        except Exception as error:
            assert SECRET not in str(error)  # noqa: PT017 - or raise


async def test_answer_of_a_limiter_is_named_by_its_class(caplog):
    """It is logged, since it refuses the retry."""

    class Odd(RetryLimiter):
        async def acquire(self, ctx, cause):
            return await response()

    with caplog.at_level(logging.WARNING, "aioretry_smithy"):
        await response_of(session([503], retrying(0.0, limiter=Odd())))

    assert "returned <ClientResponse object>, so there is no retry" in caplog.text


async def test_error_that_allows_no_retry_is_named_by_its_class():
    """In a loop of one's own it is what the request failed with."""
    strategy = smithy.SimpleRetryStrategy()
    token = await strategy.acquire_initial_retry_token()
    with raises_exactly(
        "the error allows no retry: <ClientResponseError object>", smithy.RetryError
    ):
        await strategy.refresh_retry_token_for_retry(
            token_to_renew=token, error=await status_error()
        )


async def test_decorated_session_is_named():
    """A second decoration says what is wrong, as ever."""
    async with SessionBuilder().build() as client:
        with pytest.raises(ValueError, match=r"^session: <aiohttp.*decorated yet; "):
            decorate(client)


@pytest.mark.parametrize(
    ("value", "described"),
    [
        (None, "None"),
        (True, "True"),
        (1.5, "1.5"),
        ("Adaptiv", "'Adaptiv'"),
        (b"GET", "b'GET'"),
        (timedelta(seconds=3), "datetime.timedelta(seconds=3)"),
        ([1, "2", (None,)], "[1, '2', (None,)]"),
        ({"Retry-After": 1}, "{'Retry-After': 1}"),
        (TimeoutError, "<class 'TimeoutError'>"),
        ([TimeoutError("late")], "[TimeoutError('late')]"),
        (len, "<built-in function len>"),
        (functools.partial(len), "functools.partial(<built-in function len>)"),
        (Backoff.fixed(1.0), "Backoff.fixed(1.0)"),
        (REQUEST, "<HttpRequest GET http://****@localhost/?token=****>"),
        ("9" * 5000, f"'{'9' * 499}…"),
        (b"9" * 5000, f"b'{'9' * 498}…"),
        ([0] * 200, f"[{'0, ' * 166}0…"),
        ([0] * 501, "<list object>"),
        ([[[[1]]]], "<list object>"),
        ([[[[]]]], "[[[[]]]]"),
        ({1: {2: 3}}, "{1: {2: 3}}"),
        (range(3), "<range object>"),
    ],
)
def test_what_has_surely_no_secret_is_shown(value, described):
    """An error says what was given wherever it can."""
    assert f"delay: {described} (expected: a number)" == str(
        bad_argument("delay", value, "a number")
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "value",
    [
        ["token" * 1_000_000],
        {"name": b"secret" * 1_000_000},
        [["pass" * 100] * 400] * 400,
        ("session" + " " * 5_000_000,),
    ],
    ids=["list", "dict", "nested", "blanks"],
)
def test_long_texts_in_a_collection_take_no_time(value):
    """Only what is shown is searched for what may be secret."""
    started = time.process_time()
    with pytest.raises(ValueError, match="max_total_attempts: ") as caught:
        RetryConfig(RetryStrategy.never(), max_total_attempts=value)

    assert time.process_time() - started < 1.0

    assert len(str(caught.value)) < 700


def test_value_that_python_cannot_describe_is_named_by_its_class():
    """A number of 5000 digits is refused for what it is, not for its digits."""
    with pytest.raises(ValueError, match="<int object> .expected: finite and > 0") as e:
        RetryConfig(RetryStrategy.never(), attempt_timeout=-(10**5000))

    assert str(e.value).startswith("attempt_timeout: ")
