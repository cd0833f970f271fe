"""Rules: which conditions are met by what, alone and in pairs, and what they answer."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import http
import warnings
from itertools import combinations, product

import aiohttp
import pytest

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    ClientRequestContext,
    FailFastError,
    HttpRequest,
    RetryDecision,
    RetryRule,
    RetryStrategy,
    RetryStrategyWithContent,
    UnprocessedRequestError,
    new_response,
)
from aioretry_smithy._response import record_response
from aioretry_smithy.testing import ask

BACKOFF = Backoff.fixed(0.5)
OPEN = FailFastError(CircuitBreaker("x"), 1.0)


class OwnError(Exception):
    pass


class OwnTimeoutError(OwnError, TimeoutError):
    pass


def is_local(request):
    return request.url.host == "localhost"


def is_remote(request):
    return not is_local(request)


def has_hint(ctx):
    return ctx.log.response_headers.get("X-Retry") == "please"


OUTCOMES = {
    "200": {"status": 200},
    "200 please": {"status": 200, "headers": {"X-Retry": "please"}},
    "404": {"status": 404},
    "429": {"status": 429},
    "503": {"status": 503},
    "503 please": {"status": 503, "headers": {"X-Retry": "please"}},
    "timeout": {"cause": aiohttp.SocketTimeoutError()},
    "own timeout": {"cause": OwnTimeoutError()},
    "own error": {"cause": OwnError()},
    "no connection in time": {"cause": aiohttp.ConnectionTimeoutError()},
    "turned away": {"cause": UnprocessedRequestError("busy")},
    "disconnected": {"cause": aiohttp.ServerDisconnectedError()},
    "open circuit": {"cause": OPEN},
    "bad URL": {"cause": aiohttp.InvalidURL("http://")},
}
CONDITIONS = {
    "statuses": ({"statuses": [404, 503]}, {"404", "503", "503 please"}),
    "status_classes": (
        {"status_classes": [4, 5]},
        {"404", "429", "503", "503 please"},
    ),
    "exceptions": (
        {"exceptions": [OwnError, aiohttp.InvalidURL]},
        {"own timeout", "own error", "bad URL"},
    ),
    "on_timeout": (
        {"on_timeout": True},
        {"timeout", "own timeout", "no connection in time"},
    ),
    "on_unprocessed": (
        {"on_unprocessed": True},
        {"no connection in time", "turned away"},
    ),
    "on_response": ({"on_response": has_hint}, {"200 please", "503 please"}),
}
FILTERS = {
    "methods": ({"methods": ["get", "PUT"]}, {"GET", "PUT"}),
    "request_filter": (
        {"request_filter": lambda request: request.method in {"PUT", "POST"}},
        {"PUT", "POST"},
    ),
}
METHODS = ["GET", "PUT", "POST"]
every_outcome = pytest.mark.parametrize("outcome", OUTCOMES)
one_or_two_conditions = pytest.mark.parametrize(
    "names",
    [*combinations(CONDITIONS, 1), *combinations(CONDITIONS, 2)],
    ids="+".join,
)
up_to_two_filters = pytest.mark.parametrize(
    "filters",
    [(), *combinations(FILTERS, 1), *combinations(FILTERS, 2)],
    ids="+".join,
)


def settings_of(filters, names):
    """Return the arguments of a rule, and the methods and outcomes it is to match."""
    settings, methods, outcomes = {}, {*METHODS}, set()
    for name in filters:
        setting, fitting = FILTERS[name]
        settings |= setting
        methods &= fitting
    for name in names:
        setting, meeting = CONDITIONS[name]
        settings |= setting
        outcomes |= meeting
    return settings, methods, outcomes


def asked(rule, outcome, method="GET", run=asyncio.run):
    """Return the very answer of a rule, which ``ask`` does not show."""

    class Kept(RetryStrategy):
        def should_retry(self, ctx, cause):
            self.answer = rule.should_retry(ctx, cause)

    kept = Kept()
    run(ask(kept, method=method, **OUTCOMES[outcome]))
    return kept.answer


@one_or_two_conditions
@up_to_two_filters
def test_filters_and_conditions(filters, names):
    """All filters have to fit and one of the conditions to be met, in every pair."""
    settings, methods, outcomes = settings_of(filters, names)
    rule = RetryRule(**settings, backoff=BACKOFF)
    forbidding = RetryRule.no_retry(**settings)
    with asyncio.Runner() as runner:
        answers = {
            (method, outcome): (
                asked(rule, outcome, method, runner.run),
                asked(forbidding, outcome, method, runner.run),
            )
            for method, outcome in product(METHODS, OUTCOMES)
        }
    matched = {case for case, (answer, _) in answers.items() if answer is BACKOFF}
    forbidden = {
        case
        for case, (_, answer) in answers.items()
        if answer is RetryDecision.no_retry()
    }
    left = {case for case, both in answers.items() if both == (None, None)}

    assert {*product(methods, outcomes)} == matched == forbidden
    assert answers.keys() - matched == left


@up_to_two_filters
def test_no_retry_without_a_condition(filters):
    """Whatever the filters leave is not retried, be it a success."""
    settings, methods, _ = settings_of(filters, ())
    rule = RetryRule.no_retry(**settings)
    forbidden = {
        (method, outcome)
        for method, outcome in product(METHODS, OUTCOMES)
        if asked(rule, outcome, method) is RetryDecision.no_retry()
    }

    assert {*product(methods, OUTCOMES)} == forbidden


@pytest.mark.parametrize(
    ("exceptions", "expected"),
    [
        (FailFastError, True),
        ([FailFastError], True),
        (aiohttp.ClientError, False),
        (Exception, False),
    ],
)
def test_open_circuit_is_matched_by_its_own_class_alone(exceptions, expected):
    """Naming a wide class does not wear an open circuit out by accident."""
    answer = asked(RetryRule(exceptions=exceptions, backoff=BACKOFF), "open circuit")

    assert (BACKOFF if expected else None) is answer


@pytest.mark.parametrize(
    "settings",
    [
        {"exceptions": [Exception, aiohttp.ClientError, ValueError]},
        {"on_timeout": True, "on_unprocessed": True},
    ],
)
async def test_permanent_failures_are_left_alone(settings):
    """They would fail in the same way again."""

    class OpenTooLongError(FailFastError, TimeoutError):
        pass

    rule = RetryRule(**settings, backoff=BACKOFF)
    for cause in (
        aiohttp.InvalidURL("http://"),
        aiohttp.TooManyRedirects(None, ()),
        OpenTooLongError(CircuitBreaker("x")),
        RuntimeError("Session is closed"),
    ):
        assert None is await ask(rule, cause=cause)


async def test_permanent_failure_that_is_named():
    """Who names the very class has thought about it."""
    rule = RetryRule(exceptions=(ValueError, RuntimeError), backoff=BACKOFF)

    assert BACKOFF is await ask(rule, cause=RuntimeError("Session is closed"))


async def test_the_exception_in_a_group_of_one_is_matched():
    """A task group around a single task hides nothing from a rule."""
    rule = RetryRule(exceptions=[OwnError, RuntimeError], backoff=BACKOFF)
    groups = RetryRule(exceptions=ExceptionGroup, backoff=BACKOFF)
    own, bug, several = (
        ExceptionGroup("tasks", causes)
        for causes in ([OwnError()], [RuntimeError()], [OwnError(), OwnError()])
    )

    assert BACKOFF is await ask(rule, cause=own)
    assert BACKOFF is await ask(rule, cause=bug)
    assert None is await ask(rule, cause=several)
    assert BACKOFF is await ask(groups, cause=own)


async def test_response_of_a_failed_attempt_meets_nothing():
    """A status whose body was cut is a failure, not a response."""
    rule = RetryRule(
        statuses=[503], status_classes=[5], on_response=is_local, backoff=BACKOFF
    )
    request = HttpRequest("GET", "http://localhost/")
    ctx = ClientRequestContext(request)
    record_response(ctx.log, new_response(request, 503))

    assert None is rule.should_retry(ctx, aiohttp.ClientPayloadError("cut"))


async def test_attempt_without_an_outcome_meets_nothing():
    """A context that was not sent has no status."""
    rule = RetryRule(statuses=[503], status_classes=[5])
    ctx = ClientRequestContext(HttpRequest("GET", "http://localhost/"))

    assert None is rule.should_retry(ctx, None)


async def test_functions_are_asked_no_more_than_needed():
    """Not where a filter has refused, and not where the status has decided."""
    seen = []
    rule = RetryRule(
        methods=["GET"],
        request_filter=lambda request: seen.append(request) or True,
        statuses=[503],
        on_response=lambda ctx: seen.append(ctx) or False,
        backoff=BACKOFF,
    )
    assert None is await ask(rule, status=503, method="POST")
    assert [] == seen
    assert BACKOFF is await ask(rule, status=503)
    assert [HttpRequest] == [type(each) for each in seen]
    assert None is await ask(rule, status=500)
    assert [HttpRequest, HttpRequest, ClientRequestContext] == [*map(type, seen)]


async def test_functions_may_answer_with_anything_true():
    """A match or a header is as good as True."""
    rule = RetryRule(
        request_filter=lambda request: request.url.host,
        on_response=lambda ctx: ctx.log.response_headers.get("X-Retry"),
        backoff=BACKOFF,
    )

    assert BACKOFF is await ask(rule, headers={"X-Retry": "1"})
    assert None is await ask(rule)


@pytest.mark.parametrize("name", ["request_filter", "on_response"])
async def test_errors_of_functions_go_to_the_caller(name):
    """A bug in a condition is not taken for "no"."""

    def broken(argument):
        raise OwnError(name)

    rule = RetryRule(**{name: broken}, statuses=[503])

    with pytest.raises(OwnError, match=name):
        await ask(rule)


def test_default_backoff_is_the_default_one():
    """The same object in every rule."""
    rule = RetryRule(status_classes=[5])

    assert Backoff.of_default() is rule.backoff
    assert Backoff.of_default() is asked(rule, "503")
    assert RetryRule.no_retry().backoff is None


@pytest.mark.parametrize(
    "settings", [{}, {"methods": ["GET"]}, {"request_filter": is_local}]
)
def test_rule_without_a_condition_is_refused(settings):
    """It would retry nothing, or everything: nobody knows which is meant."""
    with pytest.raises(ValueError) as caught:
        RetryRule(**settings, statuses=(), on_timeout=False, backoff=BACKOFF)

    expected = (
        "at least one of statuses, status_classes, exceptions, on_timeout,"
        " on_unprocessed, on_response"
    )
    assert f"conditions: None (expected: {expected})" == str(caught.value)


METHODS_EXPECTED = 'a collection such as ["GET"], or None'
STATUSES_EXPECTED = "a collection of integers in [100, 599]"
CLASSES_EXPECTED = "a collection of integers in [1, 5]"
EXCEPTIONS_EXPECTED = "classes derived from Exception"


async def later(argument):
    return True


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("methods", "GET", METHODS_EXPECTED),
        ("methods", b"GET", METHODS_EXPECTED),
        ("methods", [], METHODS_EXPECTED),
        ("methods", [""], METHODS_EXPECTED),
        ("methods", ["GET, PUT"], METHODS_EXPECTED),
        ("methods", [" GET"], METHODS_EXPECTED),
        ("methods", ["GET", 1], METHODS_EXPECTED),
        ("methods", 1, METHODS_EXPECTED),
        ("statuses", 503, STATUSES_EXPECTED),
        ("statuses", [99], STATUSES_EXPECTED),
        ("statuses", [600], STATUSES_EXPECTED),
        ("statuses", [503, "504"], STATUSES_EXPECTED),
        ("statuses", "503", STATUSES_EXPECTED),
        ("statuses", [503.0], STATUSES_EXPECTED),
        ("statuses", None, STATUSES_EXPECTED),
        ("status_classes", [0], CLASSES_EXPECTED),
        ("status_classes", [6], CLASSES_EXPECTED),
        ("status_classes", [True], CLASSES_EXPECTED),
        ("status_classes", 5, CLASSES_EXPECTED),
        ("exceptions", asyncio.CancelledError, EXCEPTIONS_EXPECTED),
        ("exceptions", [TimeoutError, BaseException], EXCEPTIONS_EXPECTED),
        ("exceptions", [TimeoutError()], EXCEPTIONS_EXPECTED),
        ("exceptions", TimeoutError(), EXCEPTIONS_EXPECTED),
        ("exceptions", ["TimeoutError"], EXCEPTIONS_EXPECTED),
        ("exceptions", int, EXCEPTIONS_EXPECTED),
        ("exceptions", None, EXCEPTIONS_EXPECTED),
        ("on_timeout", 1, "True or False"),
        ("on_unprocessed", BACKOFF, "True or False"),
        ("request_filter", True, "a plain function of the request, or None"),
        ("request_filter", later, "a plain function of the request, or None"),
        ("on_response", 503, "a plain function of the context, or None"),
        (
            "on_response",
            functools.partial(later),
            "a plain function of the context, or None",
        ),
    ],
)
@pytest.mark.parametrize("make", [RetryRule, RetryRule.no_retry])
def test_bad_arguments(make, name, value, expected):
    """What can be met by nothing, or is not what it looks like, is refused at once."""
    with pytest.raises(ValueError) as caught:
        make(**{"statuses": [503], name: value})

    assert f"{name}: {value!r} (expected: {expected})" == str(caught.value)


def test_backoff_must_be_one():
    """A number of seconds is a frequent slip; a rule that forbids waits for nothing."""
    with pytest.raises(ValueError) as for_rule:
        RetryRule(statuses=[503], backoff=0.5)
    with pytest.raises(ValueError) as for_no_retry:
        RetryRule.no_retry(backoff=BACKOFF)

    expected = "a Backoff or None"
    assert f"backoff: 0.5 (expected: {expected})" == str(for_rule.value)
    expected = "none where retries are forbidden"
    assert f"backoff: {BACKOFF!r} (expected: {expected})" == str(for_no_retry.value)


def test_unknown_arguments():
    """A slip of the pen is told, for the rules that forbid too."""
    for make in (RetryRule, RetryRule.no_retry):
        with pytest.raises(TypeError, match="status_code"):
            make(status_code=[503])


def test_settings_are_stored_in_one_form():
    """However they were written: equal rules are equal."""
    rule = RetryRule(
        methods=iter(["get", "Put", "GET"]),
        statuses=range(502, 505),
        status_classes=[4],
        exceptions=OwnError,
    )

    assert rule == RetryRule(
        methods={"PUT", "GET"},
        statuses=[504, http.HTTPStatus.BAD_GATEWAY, 503, 503],
        status_classes=(4,),
        exceptions=[OwnError],
    )
    assert ({"GET", "PUT"}, {502, 503, 504}) == (rule.methods, rule.statuses)
    assert (OwnError,) == rule.exceptions
    assert hash(rule) == hash(dataclasses.replace(rule))


def test_rules_that_forbid_are_others():
    """The same conditions with the opposite answer."""
    assert RetryRule(statuses=[503]) != RetryRule.no_retry(statuses=[503])
    assert RetryRule.no_retry(statuses=[503]) == RetryRule.no_retry(statuses={503})


def test_rules_can_be_replaced():
    """What a rule answers stays with it."""
    forbidding = dataclasses.replace(RetryRule.no_retry(statuses=[503]), statuses=[429])
    retrying = dataclasses.replace(
        RetryRule(statuses=[503], backoff=BACKOFF), statuses=[429]
    )

    assert RetryDecision.no_retry() is asked(forbidding, "429")
    assert BACKOFF is asked(retrying, "429")
    assert None is asked(forbidding, "503")


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (
            RetryRule(
                methods=["put", "get"],
                statuses=[503, http.HTTPStatus.CONFLICT],
                status_classes=[5],
                exceptions=[TimeoutError, aiohttp.ClientPayloadError],
                on_timeout=True,
                on_unprocessed=True,
                backoff=BACKOFF,
            ),
            (
                "RetryRule(methods=['GET', 'PUT'], statuses=[409, 503],"
                " status_classes=[5], exceptions=[TimeoutError,"
                " aiohttp.client_exceptions.ClientPayloadError], on_timeout=True,"
                " on_unprocessed=True, backoff=Backoff.fixed(0.5))"
            ),
        ),
        (RetryRule.no_retry(), "RetryRule.no_retry()"),
        (
            RetryRule.no_retry(methods=["POST"], exceptions=TimeoutError),
            "RetryRule.no_retry(methods=['POST'], exceptions=[TimeoutError])",
        ),
    ],
)
def test_repr_is_the_call_that_makes_it(rule, expected):
    """``describe()`` shows it."""
    names = {"RetryRule": RetryRule, "Backoff": Backoff, "aiohttp": aiohttp}

    assert expected == repr(rule)
    assert rule == eval(repr(rule), names)


def test_repr_names_functions():
    """A function has no call that makes it."""
    rule = RetryRule(request_filter=is_local, on_response=has_hint)

    assert "is_local" in repr(rule)
    assert "has_hint" in repr(rule)


class Inside(RetryStrategyWithContent):
    def should_retry(self, ctx, cause, content):
        return BACKOFF if content == b"busy" else None


BEHIND = [RetryRule(statuses=[503]), RetryStrategy.failsafe(), Inside()]


@pytest.mark.parametrize("behind", BEHIND)
@pytest.mark.parametrize("before", [None, RetryRule(statuses=[429]), Inside()])
def test_strategy_behind_a_catch_all_is_warned_about(before, behind):
    """It is told where the chain is made, with the names of both."""
    catch_all = RetryRule.no_retry()
    front = catch_all if before is None else before | catch_all
    with pytest.warns(RuntimeWarning) as caught:
        chain = front | behind

    (warning,) = caught
    assert __file__ == warning.filename
    assert (
        f"{behind!r} is never asked: RetryRule.no_retry() in front of it answers always"
        == str(warning.message)
    )
    assert repr(behind) in repr(chain)


def test_each_chain_is_warned_about_its_own_part():
    """What was told when the inner chain was made is not told again."""
    with pytest.warns(RuntimeWarning):
        inner = RetryRule.no_retry() | RetryStrategy.failsafe()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RetryRule(statuses=[429]) | inner

    with pytest.warns(
        RuntimeWarning, match="on_unprocessed.* is never asked"
    ) as caught:
        inner | RetryStrategy.on_unprocessed()
    assert 1 == len(caught)


def test_several_catch_alls_are_warned_about_once():
    """The first of them is the one that answers."""
    with pytest.warns(RuntimeWarning):
        front = RetryRule.no_retry() | RetryRule.no_retry()
    with pytest.warns(RuntimeWarning) as caught:
        front | RetryStrategy.failsafe()

    assert 1 == len(caught)


@pytest.mark.parametrize(
    "rule",
    [
        RetryRule.no_retry(methods=["POST"]),
        RetryRule.no_retry(request_filter=is_remote),
        RetryRule.no_retry(statuses=[501]),
        RetryRule.no_retry(exceptions=OwnError),
        RetryRule.no_retry(on_response=has_hint),
        RetryRule(status_classes=[1, 2, 3, 4, 5]),
    ],
)
def test_rules_that_leave_something_are_not_warned_about(rule):
    """The strategy behind them has its share."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")

        assert rule | RetryStrategy.failsafe() != rule


def test_nothing_behind_a_catch_all_is_not_warned_about():
    """A strategy that never retries changes nothing there."""
    catch_all = RetryRule.no_retry()

    assert catch_all is catch_all | RetryStrategy.never()
    assert catch_all is RetryStrategy.never() | catch_all


@pytest.mark.parametrize("name", ["request_filter", "on_response"])
async def test_answer_that_would_have_to_be_awaited_is_refused(name):
    """A coroutine would count as true, whatever comes of it."""

    async def later():
        return False

    rule = RetryRule(statuses=[503], **{name: lambda _: later()})
    with pytest.raises(ValueError, match=f"{name}: .*without awaiting it"):
        await ask(rule, status=200)


async def test_answer_that_is_a_future_is_refused_too():
    """There is nothing to close then."""
    future = asyncio.get_running_loop().create_future()
    rule = RetryRule(on_response=lambda ctx: future)
    with pytest.raises(ValueError, match="on_response: "):
        await ask(rule, status=200)
