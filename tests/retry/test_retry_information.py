"""Exceptions may say in Smithy's words whether to retry; all strategies believe them.

The contract of all strategies of this library: add a new one to the table.
"""

from __future__ import annotations

import asyncio
import math
from itertools import product

import aiohttp
import pytest
from chains import URL, log_of, retrying, session
from pairs import each_pair, each_value

from aioretry_smithy import (
    Backoff,
    RequestLog,
    RetryingClient,
    RetryRule,
    RetryRuleWithContent,
    RetryStopReason,
    RetryStrategy,
    RetryStrategyWithContent,
    SessionBuilder,
    smithy,
)

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
async def test_hint_below_the_backoff_changes_nothing(name):
    """It is a floor, not a delay."""
    error = TellingError(is_retry_safe=True, retry_after=1e-9)
    log = await call(name, error)

    first = log.children[0]
    assert "backoff" == first.delay_source or first.delay == 1e-9


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
