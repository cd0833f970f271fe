"""Conditions: which outcome meets which of them, alone and in pairs, in any rule."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import http
import math
from itertools import combinations, product

import aiohttp
import pytest
from calls import begin, begin_body, end, end_body
from chains import bad_argument

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerRule,
    CircuitBreakerStrategy,
    ClientRequestContext,
    FailFastError,
    HttpRequest,
    RetryDecision,
    RetryRule,
    RetryRuleWithContent,
    UnprocessedRequestError,
)
from aioretry_smithy.testing import ask

BACKOFF = Backoff.fixed(0.5)
NO_RETRY = RetryDecision.no_retry()
URL = "http://localhost/"


class OwnError(Exception):
    pass


class OwnTimeoutError(OwnError, TimeoutError):
    pass


def is_local(request):
    return request.url.host == "localhost"


def has_hint(ctx):
    return ctx.log.response_headers.get("X-Retry") == "please"


def is_polite(cause):
    return "please" in str(cause)


class Otherwise(CircuitBreakerStrategy):
    """Says that no rule in front of it applies."""

    def should_report_as_success(self, ctx, cause):
        return "otherwise"


def retrying(kind, **settings):
    return kind(**settings, backoff=BACKOFF)


KINDS = {
    "RetryRule": (functools.partial(retrying, RetryRule), BACKOFF),
    "RetryRule.no_retry": (RetryRule.no_retry, NO_RETRY),
    "RetryRuleWithContent": (
        functools.partial(retrying, RetryRuleWithContent),
        BACKOFF,
    ),
    "RetryRuleWithContent.no_retry": (RetryRuleWithContent.no_retry, NO_RETRY),
    "CircuitBreakerRule": (CircuitBreakerRule, False),
    "CircuitBreakerRule.failure": (CircuitBreakerRule.failure, False),
    "CircuitBreakerRule.success": (CircuitBreakerRule.success, True),
    "CircuitBreakerRule.ignore": (CircuitBreakerRule.ignore, None),
}
"""Functions that make rules, and the answer of each rule where it applies."""

MAY_LACK_CONDITIONS = {
    name: kind
    for name, kind in KINDS.items()
    if name.endswith(("no_retry", "success", "ignore"))
}
OUTCOMES = {
    "200": {"status": 200},
    "200 please": {"status": 200, "headers": {"X-Retry": "please"}},
    "200 late": {"status": 200, "seconds": 3.0},
    "404": {"status": 404},
    "429": {"status": 429},
    "503": {"status": 503},
    "503 please": {"status": 503, "headers": {"X-Retry": "please"}},
    "timeout": {"cause": aiohttp.SocketTimeoutError(), "seconds": 3.0},
    "own timeout": {"cause": OwnTimeoutError("please")},
    "own error": {"cause": OwnError()},
    "no connection in time": {"cause": aiohttp.ConnectionTimeoutError()},
    "turned away": {"cause": UnprocessedRequestError("busy")},
    "disconnected": {"cause": aiohttp.ServerDisconnectedError("please")},
    "open circuit": {"cause": FailFastError(CircuitBreaker("please"), 1.0)},
    "bad URL": {"cause": aiohttp.InvalidURL("http://please"), "seconds": 3.0},
}
CONDITIONS = {
    "statuses": ({"statuses": [404, 503]}, {"404", "503", "503 please"}),
    "status_classes": (
        {"status_classes": [4, 5]},
        {"404", "429", "503", "503 please"},
    ),
    "exceptions": (
        {"exceptions": [OwnError, aiohttp.InvalidURL, is_polite]},
        {"own timeout", "own error", "bad URL", "disconnected"},
    ),
    "on_timeout": (
        {"on_timeout": True},
        {"timeout", "own timeout", "no connection in time"},
    ),
    "on_unprocessed": (
        {"on_unprocessed": True},
        {"no connection in time", "turned away"},
    ),
    "slower_than": ({"slower_than": 2.0}, {"200 late", "timeout"}),
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
every_kind = pytest.mark.parametrize("kind", KINDS)
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


async def attempt(*, method="GET", status=200, headers=None, cause=None, seconds=0.0):
    """Return the context of an attempt with an outcome."""
    ctx = begin(HttpRequest(method, URL))
    await asyncio.sleep(seconds)
    end(ctx, cause or status, headers=headers)
    return ctx


def answer(rule, ctx, cause=None):
    """Return what a rule of any kind makes of an attempt."""
    if isinstance(rule, CircuitBreakerRule):
        return (rule | Otherwise()).should_report_as_success(ctx, cause)
    if isinstance(rule, RetryRuleWithContent):
        return rule.should_retry(ctx, cause, b"" if cause is None else None)
    return rule.should_retry(ctx, cause)


async def matched(rules):
    """Return by what methods and outcomes each rule was made to answer, by kinds."""
    found = {kind: set() for kind in rules}
    for method, (outcome, facts) in product(METHODS, OUTCOMES.items()):
        ctx = await attempt(method=method, **facts)
        for kind, rule in rules.items():
            answered = answer(rule, ctx, facts.get("cause"))
            if answered is KINDS[kind][1]:
                found[kind].add((method, outcome))
            else:
                # "Next" of a retry rule, and of one of a circuit breaker.
                assert answered == "otherwise" or (
                    answered is None and kind.startswith("Retry")
                )
    return found


@one_or_two_conditions
@up_to_two_filters
async def test_filters_and_conditions(filters, names):
    """All filters have to fit and one of the conditions to be met, in every pair."""
    settings, methods, outcomes = settings_of(filters, names)
    rules = {kind: make(**settings) for kind, (make, _) in KINDS.items()}

    expected = {*product(methods, outcomes)}
    assert dict.fromkeys(KINDS, expected) == await matched(rules)


@pytest.mark.filterwarnings("ignore:.* is never asked:RuntimeWarning")
@up_to_two_filters
async def test_rule_without_a_condition(filters):
    """All outcomes that the filters leave are meant, also successes."""
    settings, methods, _ = settings_of(filters, ())
    rules = {kind: make(**settings) for kind, (make, _) in MAY_LACK_CONDITIONS.items()}

    expected = {*product(methods, OUTCOMES)}
    assert dict.fromkeys(rules, expected) == await matched(rules)


@pytest.mark.parametrize(
    ("exceptions", "expected"),
    [
        (FailFastError, True),
        ([FailFastError], True),
        (aiohttp.ClientError, False),
        (Exception, False),
        (lambda cause: True, False),
    ],
)
async def test_open_circuit_is_matched_by_its_own_class_alone(exceptions, expected):
    """Naming a wide class does not wear an open circuit out by accident."""
    rule = RetryRule(exceptions=exceptions, backoff=BACKOFF)

    cause = FailFastError(CircuitBreaker("x"), 1.0)
    assert (BACKOFF if expected else None) is await ask(rule, cause=cause)


@pytest.mark.parametrize(
    "settings",
    [
        {"exceptions": [Exception, aiohttp.ClientError, ValueError]},
        {"on_timeout": True, "on_unprocessed": True, "slower_than": 1.0},
        {"exceptions": lambda cause: pytest.fail("asked")},
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
        ExceptionGroup("tasks", [RuntimeError("Session is closed")]),
    ):
        assert None is answer(rule, await attempt(cause=cause, seconds=3.0), cause)


async def test_permanent_failure_that_is_named():
    """A caller that names the very class has thought about it."""
    rule = RetryRule(exceptions=(ValueError, RuntimeError), backoff=BACKOFF)

    assert BACKOFF is await ask(rule, cause=RuntimeError("Session is closed"))


async def test_function_among_exceptions_gets_the_cause():
    """The very exception; of a group of one its member, of several the group."""
    seen = []
    rule = RetryRule(exceptions=seen.append)
    own = OwnError()
    several = ExceptionGroup("tasks", [own, own])
    for cause in (own, several, ExceptionGroup("tasks", [own])):
        await ask(rule, cause=cause)

    assert [own, several, own] == seen


async def test_function_among_exceptions_is_asked_last_and_once():
    """Where a class or another condition has decided it is not asked."""
    seen = []
    rule = RetryRule(
        exceptions=[lambda cause: seen.append(cause) or True, is_polite, OwnError],
        on_timeout=True,
        backoff=BACKOFF,
    )
    lost = ConnectionResetError()
    for cause in (OwnError(), TimeoutError(), lost):
        assert BACKOFF is await ask(rule, cause=cause)

    assert [lost] == seen


@pytest.mark.parametrize(
    ("seconds", "expected"), [(1.999, None), (2.0, None), (2.001, BACKOFF)]
)
@pytest.mark.parametrize("cause", [None, OwnError()])
async def test_slower_than_is_strict(cause, seconds, expected):
    """An attempt that took as long as that is not slower."""
    rule = RetryRule(slower_than=2.0, backoff=BACKOFF)

    ctx = await attempt(cause=cause, seconds=seconds)
    assert expected is answer(rule, ctx, cause)


async def test_slower_than_takes_a_body_that_fails_late_into_account():
    """Of an attempt that failed the time of its failure counts."""
    rule = RetryRule(slower_than=2.0, backoff=BACKOFF)
    ctx = begin()
    begin_body(ctx)
    cause = aiohttp.ClientPayloadError("cut")
    await asyncio.sleep(3.0)
    assert None is answer(rule, ctx)
    end_body(ctx, 0, cause)

    assert BACKOFF is answer(rule, ctx, cause)


async def test_response_of_a_failed_attempt_meets_nothing():
    """A status whose body was cut is a failure, not a response."""
    rule = RetryRule(
        statuses=[503], status_classes=[5], on_response=is_local, backoff=BACKOFF
    )
    ctx = await attempt(status=503)

    assert None is rule.should_retry(ctx, aiohttp.ClientPayloadError("cut"))


async def test_attempt_without_an_outcome_meets_nothing():
    """A context that was not sent has no status, and took no time."""
    rule = RetryRule(statuses=[503], status_classes=[5], slower_than=1e-9)
    ctx = begin()

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
        exceptions=lambda cause: cause.args,
        on_response=lambda ctx: ctx.log.response_headers.get("X-Retry"),
        backoff=BACKOFF,
    )

    assert BACKOFF is await ask(rule, headers={"X-Retry": "1"})
    assert None is await ask(rule)
    assert BACKOFF is await ask(rule, cause=OwnError(1))
    assert None is await ask(rule, cause=OwnError())


FUNCTIONS = ["request_filter", "exceptions", "on_response"]


def outcome_for(name):
    """Return what a function of this name is asked about."""
    return {"cause": OwnError()} if name == "exceptions" else {}


@pytest.mark.parametrize("name", FUNCTIONS)
async def test_errors_of_functions_go_to_the_caller(name):
    """A bug in a condition is not taken for "no"."""

    def broken(argument):
        raise LookupError(name)

    rule = RetryRule(statuses=[503], **{name: broken})

    with pytest.raises(LookupError, match=name):
        await ask(rule, **outcome_for(name))


@pytest.mark.parametrize("name", FUNCTIONS)
async def test_answer_that_would_have_to_be_awaited_is_refused(name):
    """A coroutine would count as true, whatever comes of it."""
    rule = RetryRule(statuses=[503], **{name: Later()})
    with pytest.raises(ValueError, match=f"{name}: .*without awaiting it"):
        await ask(rule, **outcome_for(name))


async def test_answer_that_is_a_future_is_refused_too():
    """There is nothing to close then."""
    future = asyncio.get_running_loop().create_future()
    rule = RetryRule(on_response=lambda ctx: future)
    with pytest.raises(ValueError, match="on_response: "):
        await ask(rule, status=200)


@every_kind
@pytest.mark.parametrize(
    "settings", [{}, {"methods": ["GET"]}, {"request_filter": is_local}]
)
def test_rule_that_needs_a_condition_is_refused_without(kind, settings):
    """It would match nothing, or everything: nobody knows which is meant."""
    make, _ = KINDS[kind]
    if kind in MAY_LACK_CONDITIONS:
        assert make(**settings) == make(**settings, statuses=(), on_timeout=False)
        return
    with pytest.raises(ValueError) as caught:
        make(**settings, statuses=(), on_timeout=False)

    expected = (
        "at least one of statuses, status_classes, exceptions, on_timeout,"
        " on_unprocessed, slower_than, on_response"
    )
    expected += ", on_content" * (kind == "RetryRuleWithContent")
    assert f"conditions: None (expected: {expected})" == str(caught.value)


METHODS_EXPECTED = 'a collection such as ["GET"], or None'
STATUSES_EXPECTED = "a collection of integers in [100, 599]"
CLASSES_EXPECTED = "a collection of integers in [1, 5]"
EXCEPTIONS_EXPECTED = "classes derived from Exception or plain functions of the cause"
SECONDS_EXPECTED = "seconds, > 0 and finite, or None"


async def later(argument):
    return True


class Later:
    """An object to be called that does not look as if its answer had to be awaited."""

    def __call__(self, argument):
        return later(argument)


class AsyncCall:
    """An object whose answer would have to be awaited."""

    async def __call__(self, argument):
        return True


@every_kind
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
        ("statuses", "", STATUSES_EXPECTED),
        ("statuses", b"\xc8", STATUSES_EXPECTED),
        ("statuses", None, STATUSES_EXPECTED),
        ("status_classes", [0], CLASSES_EXPECTED),
        ("status_classes", [6], CLASSES_EXPECTED),
        ("status_classes", [True], CLASSES_EXPECTED),
        ("status_classes", 5, CLASSES_EXPECTED),
        ("status_classes", bytearray([4, 5]), CLASSES_EXPECTED),
        ("exceptions", asyncio.CancelledError, EXCEPTIONS_EXPECTED),
        ("exceptions", [TimeoutError, BaseException], EXCEPTIONS_EXPECTED),
        ("exceptions", [TimeoutError()], EXCEPTIONS_EXPECTED),
        ("exceptions", TimeoutError(), EXCEPTIONS_EXPECTED),
        ("exceptions", ["TimeoutError"], EXCEPTIONS_EXPECTED),
        ("exceptions", "TimeoutError", EXCEPTIONS_EXPECTED),
        ("exceptions", "", EXCEPTIONS_EXPECTED),
        ("exceptions", int, EXCEPTIONS_EXPECTED),
        ("exceptions", AsyncCall(), EXCEPTIONS_EXPECTED),
        ("exceptions", None, EXCEPTIONS_EXPECTED),
        ("exceptions", later, EXCEPTIONS_EXPECTED),
        ("exceptions", [TimeoutError, later], EXCEPTIONS_EXPECTED),
        ("exceptions", [functools.partial(later)], EXCEPTIONS_EXPECTED),
        ("on_timeout", 1, "True or False"),
        ("on_unprocessed", BACKOFF, "True or False"),
        ("slower_than", 0, SECONDS_EXPECTED),
        ("slower_than", -1.0, SECONDS_EXPECTED),
        ("slower_than", math.inf, SECONDS_EXPECTED),
        ("slower_than", math.nan, SECONDS_EXPECTED),
        ("slower_than", True, SECONDS_EXPECTED),
        ("slower_than", "2", SECONDS_EXPECTED),
        ("request_filter", True, "a plain function of the request, or None"),
        ("request_filter", later, "a plain function of the request, or None"),
        ("request_filter", AsyncCall(), "a plain function of the request, or None"),
        ("on_response", 503, "a plain function of the context, or None"),
        (
            "on_response",
            functools.partial(later),
            "a plain function of the context, or None",
        ),
    ],
)
def test_bad_arguments(kind, name, value, expected):
    """Conditions that nothing can meet, or of a wrong type, are refused at once."""
    make, _ = KINDS[kind]
    with bad_argument(name, value, expected):
        make(**{"statuses": [503], name: value})


@every_kind
def test_unknown_arguments(kind):
    """A slip of the pen is told, by all that make rules."""
    make, _ = KINDS[kind]

    with pytest.raises(TypeError, match="status_code"):
        make(status_code=[503])


@every_kind
def test_settings_are_stored_in_one_form(kind):
    """However they were written: equal rules are equal."""
    make, _ = KINDS[kind]
    rule = make(
        methods=iter(["get", "Put", "GET"]),
        statuses=range(502, 505),
        status_classes=[4],
        exceptions=OwnError,
        slower_than=2,
    )

    assert rule == make(
        methods={"PUT", "GET"},
        statuses=[504, http.HTTPStatus.BAD_GATEWAY, 503, 503],
        status_classes=(4,),
        exceptions=[OwnError],
        slower_than=2.0,
    )
    assert ({"GET", "PUT"}, {502, 503, 504}) == (rule.methods, rule.statuses)
    assert (OwnError,) == rule.exceptions
    assert hash(rule) == hash(dataclasses.replace(rule))
    assert (is_polite,) == make(exceptions=is_polite).exceptions


@every_kind
async def test_rule_can_be_replaced(kind):
    """A copy with other conditions keeps the rule's answer."""
    make, expected = KINDS[kind]
    rule = dataclasses.replace(make(statuses=[503]), statuses=[429])

    assert make(statuses=[429]) == rule
    assert expected is answer(rule, await attempt(status=429))


NAMES = {
    "RetryRule": RetryRule,
    "RetryRuleWithContent": RetryRuleWithContent,
    "CircuitBreakerRule": CircuitBreakerRule,
    "Backoff": Backoff,
    "aiohttp": aiohttp,
}


@every_kind
def test_repr_is_the_call_that_makes_it(kind):
    """``describe()`` shows it."""
    make, answered = KINDS[kind]
    name = "CircuitBreakerRule.failure" if kind == "CircuitBreakerRule" else kind
    backoff = ", backoff=Backoff.fixed(0.5)" if answered is BACKOFF else ""
    rule = make(
        methods=["put", "get"],
        statuses=[503, http.HTTPStatus.CONFLICT],
        status_classes=[5],
        exceptions=[TimeoutError, aiohttp.ClientPayloadError],
        on_timeout=True,
        on_unprocessed=True,
        slower_than=1.5,
    )

    expected = (
        f"{name}(methods=['GET', 'PUT'], statuses=[409, 503], status_classes=[5],"
        " exceptions=[TimeoutError, aiohttp.client_exceptions.ClientPayloadError],"
        f" on_timeout=True, on_unprocessed=True, slower_than=1.5{backoff})"
    )
    assert expected == repr(rule)
    assert rule == eval(repr(rule), NAMES)


@pytest.mark.parametrize("kind", MAY_LACK_CONDITIONS)
def test_repr_without_arguments(kind):
    """Arguments that are not given are not shown."""
    make, _ = MAY_LACK_CONDITIONS[kind]

    assert f"{kind}()" == repr(make())


def test_repr_names_functions():
    """A function has no call that makes it."""
    rule = RetryRule(
        request_filter=is_local, exceptions=[OwnError, is_polite], on_response=has_hint
    )

    assert all(name in repr(rule) for name in ("is_local", "is_polite", "has_hint"))
