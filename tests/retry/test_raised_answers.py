"""Exceptions that carry an answer, or say in Smithy's words whether to retry.

The contract of all strategies of this library: add a new one to the tables.
"""

import asyncio
import math
from itertools import product

import aiohttp
import pytest
from calls import raised, raising
from chains import NOW, SAFELY, URL, log_of, retrying, session
from pairs import each_pair, each_value

from aioretry_smithy import (
    Backoff,
    RequestLog,
    RetryBudget,
    RetryingClient,
    RetryingRpcClient,
    RetryRule,
    RetryRuleWithContent,
    RetryStopReason,
    RetryStrategy,
    RetryStrategyWithContent,
    SessionBuilder,
    rpc,
    smithy,
)
from aioretry_smithy.smithy import (
    DEFAULT_CLASSIFIERS,
    RetryAction,
    StandardRetryStrategy,
    only_idempotent,
)
from aioretry_smithy.testing import ScriptedTransport

STATUSES = [400, 401, 403, 404, 408, 409, 425, 429, 500, 501, 502, 503, 504, 505, 599]
JUDGES = {
    "failsafe": SAFELY,
    "server errors": RetryStrategy.on_server_error_status(NOW),
    "never sent": RetryStrategy.on_unprocessed(NOW),
    "a function": RetryStrategy.on_status(
        lambda status, cause: NOW if cause or status in {404, 503} else None
    ),
    "statuses": RetryRule(statuses=[404, 503], backoff=NOW),
    "classes": RetryRule(status_classes=[5], backoff=NOW),
    "statuses and content": RetryRuleWithContent(
        status_classes=[4], on_content=lambda content: False, backoff=NOW
    ),
    "all but": RetryRule.no_retry(statuses=[503]) | SAFELY,
    "a time": RetryRule(slower_than=60.0, backoff=NOW),
}


async def attempts(strategy, status, *inside, method="GET"):
    answers = [(status, {}, b"")] * 4
    settings = {"max_total_attempts": 4}
    client = session(answers, *inside, retrying(strategy, **settings))
    log = await log_of(client, method=method)
    return log.total_attempts, log.stop_reason


@pytest.mark.slow
@each_pair(status=STATUSES, name=[*JUDGES], method=["GET", "POST"])
async def test_raised_status_is_retried_as_its_answer_is(status, name, method):
    """Each strategy judges the status, whichever way it comes."""
    answered = await attempts(JUDGES[name], status, method=method)

    assert answered == await attempts(JUDGES[name], status, raising, method=method)


@pytest.mark.parametrize("status", STATUSES)
async def test_smithy_retries_a_raised_status_as_its_answer(status):
    """Here the classifiers judge."""
    settings = {"max_total_attempts": 3}
    logs = [
        await log_of(
            session(
                [(status, {}, b"")] * 3,
                *inside,
                retrying(StandardRetryStrategy(), **settings),
            )
        )
        for inside in [(), (raising,)]
    ]

    assert logs[0].total_attempts == logs[1].total_attempts


@pytest.mark.parametrize(
    ("exceptions", "status", "expected"),
    [
        (aiohttp.ClientResponseError, 404, 4),
        (lambda cause: getattr(cause, "status", None) == 404, 404, 4),
        (aiohttp.ClientError, 404, 1),
        (aiohttp.ClientError, 503, 4),
        (Exception, 404, 1),
    ],
)
async def test_rule_on_exceptions_names_what_was_raised(exceptions, status, expected):
    """A class above that of raised answers means failures, and a 404 is none."""
    rule = RetryRule(exceptions=exceptions, backoff=NOW)

    assert expected == (await attempts(rule, status, raising))[0]


async def test_class_of_one_s_own_is_named():
    """Also where it has another base, which says nothing of statuses."""

    class ShopError(Exception):
        pass

    class ShopResponseError(ShopError, aiohttp.ClientResponseError):
        pass

    answers = [raised(404, kind=ShopResponseError), 200]
    rule = RetryRule(exceptions=ShopError, backoff=NOW)
    log = await log_of(session(answers, retrying(rule)))

    assert (2, 200) == (log.total_attempts, log.response_status)


@pytest.mark.parametrize("is_retry_safe", [True, False])
async def test_what_an_exception_says_of_retries_goes_before_its_status(is_retry_safe):
    """An exception of the user's own knows best."""
    status = 404 if is_retry_safe else 503
    causes = [raised(status), raised(status)]
    for cause in causes:
        cause.is_retry_safe = is_retry_safe
    strategy = RetryStrategy.on_status(
        lambda status, cause: None if status == 200 else NOW
    )
    strategy |= SAFELY
    log = await log_of(session([*causes, 200], retrying(strategy)))

    assert (3 if is_retry_safe else 1) == log.total_attempts


@pytest.mark.parametrize(
    ("cause", "expected"),
    [
        (raised(503, {"Retry-After": "7"}), 7.0),
        (raised(429, {"retry-after": 7}), 7.0),
        (raised(503, {"x-amz-retry-after": "1500"}), 1.5),
        (ExceptionGroup("one", [raised(503, {"Retry-After": "7"})]), 7.0),
        (raised(503, {"Retry-After": "soon"}), 0.0),
        (raised(503), 0.0),
        (raised(503, "no headers"), 0.0),
    ],
)
async def test_hint_in_a_raised_answer_is_obeyed(cause, expected):
    """As that of a response."""
    log = await log_of(session([cause, 200], retrying(SAFELY)))
    first = log.children[0]

    assert (200, expected) == (log.response_status, first.delay)
    assert ("retry_after" if expected else "backoff") == first.delay_source


async def test_own_wait_goes_before_the_headers():
    """The exception has read more than the headers."""
    cause = raised(503, {"Retry-After": "7"})
    cause.retry_after = 2.0
    log = await log_of(session([cause, 200], retrying(SAFELY)))

    assert 2.0 == log.children[0].delay


@pytest.mark.parametrize("status", [404, 429, 500, 503])
@pytest.mark.parametrize("headers", [{}, {"Retry-After": "0"}])
async def test_budget_counts_a_raised_status_as_its_answer(status, headers):
    """Failures of the server press the brake; a 404 is a success."""
    counted = []
    for inside in [(), (raising,)]:
        budget = RetryBudget(brake_after=None, capacity=10, deposit=0.5)
        decorators = *inside, retrying(SAFELY, max_total_attempts=3, limiter=budget)
        for _ in range(2):
            await log_of(session([(status, headers, b"")] * 3, *decorators))
        counted.append((budget.failures_in_a_row, budget.tokens))

    assert counted[0] == counted[1]


@pytest.mark.parametrize(
    ("status", "failures"), [(404, 0), (429, 0), (500, 1), (503, 1), (777, 0)]
)
async def test_limiter_without_a_wish_for_a_retry(status, failures):
    """A client that never retries still tells its limiter of server errors."""
    budget = RetryBudget()
    retry = retrying(RetryStrategy.never(), limiter=budget)
    await log_of(session([raised(status)], retry))

    assert failures == budget.failures_in_a_row


class TestFunctions:
    """A function that calls a session which raises for statuses itself."""

    @pytest.mark.parametrize(("status", "expected"), [(404, 1), (503, 3), (429, 3)])
    async def test_is_retried_by_the_status(self, status, expected):
        """Its exceptions are the only answers that it has."""
        transport = ScriptedTransport([status] * 3)
        client = session(transport, raise_for_status=True)
        settings = {"max_total_attempts": 3}
        retry = RetryingRpcClient.new_decorator(SAFELY, **settings)

        @rpc(retry, idempotent=True)
        async def fetch():
            async with client.get(URL) as response:
                return await response.read()

        async with client:
            with pytest.raises(aiohttp.ClientResponseError) as caught:
                await fetch()

        assert status == caught.value.status
        assert expected == len(transport.requests)

    async def test_does_not_retry_what_was_retried_inside(self):
        """The session has given up the 503, which goes before the status."""
        transport = ScriptedTransport([503] * 9)
        client = session(
            transport, retrying(SAFELY, max_total_attempts=3), raise_for_status=True
        )
        strategies = JUDGES["a function"], JUDGES["statuses"], SAFELY
        for strategy in strategies:
            retry = RetryingRpcClient.new_decorator(strategy)

            @rpc(retry, idempotent=True)
            async def fetch():
                await client.get(URL)

            before = len(transport.requests)
            with pytest.raises(aiohttp.ClientResponseError):
                await fetch()

            assert 3 == len(transport.requests) - before, strategy
        await client.close()


async def test_classifier_of_one_s_own_hears_of_a_raised_status():
    """A final status ends no chain of classifiers."""

    def conflicts(failure, previous):
        return RetryAction.retry() if failure.status == 409 else None

    retry = RetryingClient.new_decorator(
        StandardRetryStrategy(),
        classifiers=(*DEFAULT_CLASSIFIERS, conflicts, only_idempotent),
    )
    log = await log_of(session([raised(409), 200], retry))

    assert (2, 200) == (log.total_attempts, log.response_status)


SOON = Backoff.fixed(0.5)
IDEMPOTENT = (*smithy.DEFAULT_CLASSIFIERS, smithy.only_idempotent)


class TellingError(Exception):
    """Says what it was given."""

    def __init__(self, **information):
        super().__init__(information)
        vars(self).update(information)


class TellingTimeout(aiohttp.ConnectionTimeoutError):
    """The same, of a class that every strategy would retry."""

    def __init__(self, **information):
        super().__init__(f"{information}")
        vars(self).update(information)


class BreakingError(Exception):
    """Breaks when it is asked."""

    def __init__(self, **information):
        super().__init__(information)

    @property
    def is_retry_safe(self):
        raise LookupError("no such thing")

    retry_after = is_throttling_error = is_timeout_error = fault = is_retry_safe


class Passing(RetryStrategyWithContent):
    """Looks at bodies, and leaves failures to the next strategy."""

    def should_retry(self, ctx, cause, content):
        return None


def on_status():
    return RetryStrategy.on_status(lambda status, cause: SOON if cause else None)


STRATEGIES = {
    "failsafe": lambda: RetryStrategy.failsafe(SOON),
    "on_unprocessed": lambda: RetryStrategy.on_unprocessed(SOON),
    "on_server_error_status": lambda: RetryStrategy.on_server_error_status(SOON),
    "on_status": on_status,
    "rule on_unprocessed": lambda: RetryRule(on_unprocessed=True, backoff=SOON),
    "rule exceptions": lambda: RetryRule(exceptions=Exception, backoff=SOON),
    "rule function": lambda: RetryRule(exceptions=lambda cause: True, backoff=SOON),
    "rule with content": lambda: RetryRuleWithContent(
        on_content=lambda content: content is None, backoff=SOON
    ),
    "chain": lambda: RetryRule(statuses=[409]) | RetryStrategy.failsafe(SOON),
    "chain with content": lambda: Passing() | RetryStrategy.failsafe(SOON),
    "simple": smithy.SimpleRetryStrategy,
    "standard": smithy.StandardRetryStrategy,
    "adaptive": smithy.AdaptiveRetryStrategy,
    "only idempotent": smithy.StandardRetryStrategy,
}
SMITHY = {"simple", "standard", "adaptive", "only idempotent"}
SETTINGS = {"only idempotent": {"classifiers": IDEMPOTENT}}
OF_CLASSES = {
    "rule of that class": lambda: RetryRule(
        exceptions=[TellingError, TellingTimeout], backoff=SOON
    ),
    "rule with content of that class": lambda: RetryRuleWithContent(
        exceptions=[TellingError, TellingTimeout], backoff=SOON
    ),
}
each_strategy = pytest.mark.parametrize("name", STRATEGIES)
OF_EACH_KIND = ["failsafe", "rule with content", "simple", "standard"]
"""Strategies that have no code in common but what all have."""


def alone(error):
    return error


def grouped(error):
    return ExceptionGroup("one", [error])


SHAPES = [alone, grouped]
NO_HINTS = [math.nan, math.inf, -1, "7", True, None, b"7", [7], max, 10**400]
GARBLED = [
    BreakingError(),
    TellingError(is_retry_safe="no", fault=1, is_throttling_error=max),
    TellingError(is_retry_safe=0.0, fault=["client"], is_timeout_error="yes"),
    TellingError(is_retry_safe=2, fault="CLIENT", is_throttling_error=[]),
]


def call(name, error, method="GET", **settings):
    """Make a call whose first attempt fails with *error*, for its log."""
    strategy = (STRATEGIES | OF_CLASSES)[name]()
    decorator = retrying(strategy, **SETTINGS.get(name, {}) | settings)
    return log_of(session([error, 200], decorator), method=method)


@each_pair(name=STRATEGIES, shape=SHAPES, method=["GET", "POST"])
async def test_safe_is_retried_whatever_the_method(name, shape, method):
    """True says that nothing was carried out, so a POST may go out again."""
    error = shape(TellingError(is_retry_safe=True))
    log = await call(name, error, method)

    assert (2, 200) == (log.total_attempts, log.response_status)


@each_pair(
    name=[*STRATEGIES, *OF_CLASSES],
    shape=SHAPES,
    kind=[TellingError, TellingTimeout],
    fault=[None, "server"],
)
async def test_unsafe_is_never_retried(name, shape, kind, fault):
    """False is an order, whatever the class of the exception would have meant."""
    error = shape(kind(is_retry_safe=False, fault=fault, is_throttling_error=True))
    log = await call(name, error)

    assert 1 == log.total_attempts


@each_pair(name=STRATEGIES, shape=SHAPES, kind=[TellingError, TellingTimeout])
async def test_fault_of_the_client_is_not_retried(name, shape, kind):
    """Where nobody can tell whether it is safe, the same request fails again."""
    log = await call(name, shape(kind(is_retry_safe=None, fault="client")))

    assert 1 == log.total_attempts


async def test_rule_that_names_the_class_decides_about_a_fault_of_the_client():
    """It is no order, and the rule's author knows that class: a conflict, say."""
    log = await call("rule of that class", TellingError(fault="client"))

    assert 2 == log.total_attempts


@pytest.mark.parametrize("name", ["failsafe", "simple", "standard", "only idempotent"])
@pytest.mark.parametrize(
    "information", [{"fault": "server"}, {"is_throttling_error": True}]
)
async def test_fault_of_the_server_is_retried_where_that_does_no_harm(
    name, information
):
    """Nobody can tell whether it is safe; a GET is in any case."""
    error = TellingError(is_retry_safe=None, **information)
    log = await call(name, error)

    assert 2 == log.total_attempts


@each_value(name=STRATEGIES, shape=SHAPES)
@pytest.mark.usefixtures("draw")
async def test_hint_is_a_floor_of_the_wait(name, shape):
    """A retry_after of 7 waits 7 s, and says why."""
    error = shape(TellingError(is_retry_safe=True, retry_after=7))
    log = await call(name, error)

    first = log.children[0]
    assert (7.0, "retry_after") == (first.delay, first.delay_source)
    assert 7.0 == asyncio.get_running_loop().time()


@each_strategy
async def test_hint_can_be_switched_off(name):
    """As that of the headers. What a Smithy strategy makes of it is its own affair."""
    error = TellingError(is_retry_safe=True, retry_after=50)
    log = await call(name, error, use_retry_after=False)

    first = log.children[0]
    assert "backoff" == first.delay_source
    if name not in SMITHY:
        assert 0.5 == first.delay


@each_strategy
async def test_hint_that_is_too_long_ends_the_call(name):
    """At once, with the exception as it is."""
    error = TellingError(is_retry_safe=True, retry_after=61)
    log = await call(name, error)

    assert RetryStopReason.RETRY_AFTER_TOO_LONG == log.stop_reason
    assert 0.0 == asyncio.get_running_loop().time()


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        *product(OF_EACH_KIND, NO_HINTS),
        *((name, math.nan) for name in STRATEGIES if name not in OF_EACH_KIND),
    ],
)
async def test_hint_that_is_none_is_ignored(name, hint):
    """A hint that is no finite number of seconds, 0 or more, is ignored."""
    log = await call(name, TellingError(is_retry_safe=True, retry_after=hint))

    assert 2 == log.total_attempts
    assert "backoff" == log.children[0].delay_source


@pytest.mark.parametrize(
    ("name", "error"),
    [
        *product(OF_EACH_KIND, GARBLED),
        *((name, BreakingError()) for name in STRATEGIES if name not in OF_EACH_KIND),
    ],
)
async def test_garbled_information_says_nothing(name, error):
    """The outcome is that of an exception that says nothing at all."""
    silent = await call(name, TellingError())
    garbled = await call(name, error)

    assert (silent.total_attempts, silent.stop_reason) == (
        garbled.total_attempts,
        garbled.stop_reason,
    )


@each_strategy
async def test_what_the_callers_own_body_raises_is_never_retried(name):
    """It was not sent, whatever the exception says of itself."""

    def body():
        raise TellingError(is_retry_safe=True)

    strategy = STRATEGIES[name]()
    builder = SessionBuilder().decorator(
        RetryingClient.new_decorator(strategy, **SETTINGS.get(name, {}))
    )
    async with builder.build() as session:
        with pytest.raises(TellingError) as caught:
            await session.put(URL, data=body)

    assert 1 == RequestLog.of(caught.value).total_attempts
