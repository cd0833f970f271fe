"""Conditions: which outcome meets which of them, alone and in pairs, in any rule."""

import asyncio
from itertools import combinations, cycle, product

import aiohttp
import pytest
from calls import begin, begin_body, end_body
from pairs import (
    BACKOFF,
    KINDS,
    MAY_LACK_CONDITIONS,
    OwnError,
    answer,
    attempt,
    has_hint,
    is_local,
    is_polite,
    later,
)

from aioretry_smithy import (
    CircuitBreaker,
    ClientRequestContext,
    FailFastError,
    HttpRequest,
    RetryRule,
    UnprocessedRequestError,
)
from aioretry_smithy.testing import ask


class OwnTimeoutError(OwnError, TimeoutError):
    pass


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
    "status_classes": ({"status_classes": [4, 5]}, {"404", "429", "503", "503 please"}),
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
UP_TO_TWO_FILTERS = [(), *combinations(FILTERS, 1), *combinations(FILTERS, 2)]


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


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        *product(UP_TO_TWO_FILTERS, combinations(CONDITIONS, 1)),
        # Filters are joined with both of two conditions, or with none.
        *zip(cycle(UP_TO_TWO_FILTERS), combinations(CONDITIONS, 2)),
    ],
    ids="+".join,
)
async def test_filters_and_conditions(filters, names):
    """All filters have to fit and one of the conditions to be met, in every pair."""
    settings, methods, outcomes = settings_of(filters, names)
    rules = {kind: make(**settings) for kind, (make, _) in KINDS.items()}

    expected = {*product(methods, outcomes)}
    assert dict.fromkeys(KINDS, expected) == await matched(rules)


@pytest.mark.filterwarnings("ignore:.* is never reached:RuntimeWarning")
@pytest.mark.parametrize("filters", UP_TO_TWO_FILTERS, ids="+".join)
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
    assert [HttpRequest, HttpRequest] == [*map(type, seen[:2])]
    assert isinstance(seen[2], ClientRequestContext)


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


class Later:
    """An object to be called that does not look as if its answer had to be awaited."""

    def __call__(self, argument):
        return later(argument)
