"""Strategies and rules: what a circuit breaker counts as a failure."""

import asyncio
import dataclasses
import ssl
import warnings
from functools import partial

import aiohttp
import pytest
import yarl
from aiohttp.client_reqrep import ConnectionKey
from aiohttp.http import HttpProcessingError
from calls import ended
from chains import URL, connected, raised_from, retrying, telling
from multidict import CIMultiDict, CIMultiDictProxy
from pairs import each_pair

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitBreakerRule,
    CircuitBreakerStrategy,
    CircuitState,
    EventCount,
    FailFastError,
    ResponseTimeoutError,
    RetryRule,
    UnprocessedRequestError,
    new_response,
)
from aioretry_smithy._failures.failure import judge
from aioretry_smithy.testing import ScriptedTransport

URL_ = yarl.URL("http://localhost/")
KEY = ConnectionKey("localhost", 80, False, True, None, None, None)
INFO = aiohttp.RequestInfo(URL_, "GET", CIMultiDictProxy(CIMultiDict()), URL_)


def verdict_of_default(*, status=None, cause=None):
    """Ask the default strategy about an outcome."""
    strategy = CircuitBreakerStrategy.on_server_error_status()
    return strategy.should_report_as_success(ended(status, cause=cause), cause)


@pytest.mark.parametrize("status", [101, 200, 204, 304, 404, 408, 429, 499, 600, 999])
async def test_a_status_that_is_not_5xx_is_a_success(status):
    """The server works, even if it does not like the request."""
    assert True is verdict_of_default(status=status)


@pytest.mark.parametrize("status", [500, 501, 503, 599])
async def test_a_server_error_is_a_failure(status):
    """A server that says that it is broken is."""
    assert False is verdict_of_default(status=status)


async def test_an_unknown_status_is_not_counted():
    """Where nothing is known, nothing is said about the server."""
    assert None is verdict_of_default()


@pytest.mark.parametrize(
    "cause",
    [
        TimeoutError(),
        ConnectionResetError(),
        OSError(),
        aiohttp.ServerDisconnectedError(),
        aiohttp.SocketTimeoutError(),
        aiohttp.ConnectionTimeoutError(),
        aiohttp.ClientPayloadError(),
        aiohttp.ClientOSError(104, "reset"),
        aiohttp.ClientConnectorError(KEY, OSError(111, "refused")),
        aiohttp.ClientConnectorCertificateError(KEY, ssl.CertificateError()),
        aiohttp.ServerFingerprintMismatch(b"a", b"b", "localhost", 80),
        raised_from(
            aiohttp.ClientResponseError(INFO, (), status=400),
            HttpProcessingError(message="garbage"),
        ),
        aiohttp.TooManyRedirects(INFO, ()),
        aiohttp.InvalidUrlRedirectClientError("http://"),
        aiohttp.NonHttpUrlRedirectClientError("ftp://localhost/"),
        ResponseTimeoutError(),
        Exception("of an application"),
        type("OwnError", (ValueError,), {})(),
    ],
    ids=lambda cause: type(cause).__name__,
)
async def test_an_exception_is_a_failure(cause):
    """A failure that may be the server's doing counts against it."""
    assert False is verdict_of_default(cause=cause)


@pytest.mark.parametrize(
    "cause",
    [
        asyncio.CancelledError(),
        FailFastError(CircuitBreaker("inner")),
        UnprocessedRequestError("too many in flight"),
        aiohttp.InvalidURL("http://"),
        aiohttp.InvalidUrlClientError("http://"),
        aiohttp.NonHttpUrlClientError("ftp://localhost/"),
        TypeError("no such argument"),
        ValueError("bad argument"),
        RuntimeError("Session is closed"),
        KeyError("in a decorator"),
        ZeroDivisionError(),
        aiohttp.ClientConnectionError("Connector is closed"),
        raised_from(aiohttp.ClientConnectionError("body"), KeyError("in the body")),
    ],
    ids=lambda cause: type(cause).__name__,
)
async def test_what_says_nothing_about_the_server_is_not_counted(cause):
    """Our refusals and the caller's mistakes neither open nor close a circuit."""
    assert None is verdict_of_default(cause=cause)


async def test_what_the_callers_own_object_raised_is_not_counted():
    """A factory that fails on a bad certificate elsewhere tells nothing of the host."""
    cause = aiohttp.ClientConnectorCertificateError(KEY, ssl.CertificateError("no"))
    judge(cause).raised_by_caller = True

    assert None is verdict_of_default(cause=cause)
    assert None is verdict_of_default(cause=ExceptionGroup("tasks", [cause]))


@each_pair(
    case=[
        (Exception("declined"), None, False),
        (Exception("broken"), "server", False),
        (Exception("bad order"), "client", None),
        (aiohttp.ServerDisconnectedError(), None, False),
        (UnprocessedRequestError("busy"), None, None),
        (RuntimeError("Session is closed"), None, None),
    ],
    is_retry_safe=[True, False, None],
    group=[False, True],
    ids=repr,
)
async def test_whether_a_retry_is_safe_says_nothing_about_the_server(
    case, is_retry_safe, group
):
    """A server that must not be asked again is down all the same."""
    error, fault, expected = case
    cause = telling(error, fault=fault, is_retry_safe=is_retry_safe)
    if group:
        cause = ExceptionGroup("tasks", [cause])

    assert expected is verdict_of_default(cause=cause)


def test_the_default_strategy_is_one_object():
    """It has no state, so all share it; its text is how to get it."""
    strategy = CircuitBreakerStrategy.on_server_error_status()

    assert strategy is CircuitBreakerStrategy.on_server_error_status()
    assert "CircuitBreakerStrategy.on_server_error_status()" == repr(strategy)
    with pytest.raises(AttributeError):
        strategy.status = 400


def test_a_strategy_has_to_decide():
    """A subclass without a verdict_of_default cannot be made."""
    with pytest.raises(TypeError):
        type("Undecided", (CircuitBreakerStrategy,), {})()


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


@pytest.mark.parametrize("make", [FAILURE, partial(dataclasses.replace, IGNORE())])
def test_backoff_is_no_argument(make):
    """A circuit breaker waits for nothing."""
    with pytest.raises(TypeError, match="backoff"):
        make(statuses=[503], backoff=Backoff.fixed(1.0))
