"""Cases of several dimensions, without all of their product, and kinds of rules."""

import asyncio
import functools
from itertools import combinations, cycle, islice, product

import pytest
from calls import begin, end

from aioretry_smithy import (
    Backoff,
    CircuitBreakerRule,
    CircuitBreakerStrategy,
    HttpRequest,
    RetryDecision,
    RetryRule,
    RetryRuleWithContent,
)


def each_pair(*, ids=None, **axes):
    """Parametrize so that each two values of different axes meet in some case.

    It is for axes of which no three play together: what breaks where two values meet
    is found, by as few cases as the two longest axes have pairs.

    >>> each_pair(method=["GET", "PUT"], end=["close", "reset"], size=[1, 2]).args[1]
    [('GET', 'close', 1), ('GET', 'reset', 2), ('PUT', 'close', 2), ('PUT', 'reset', 1)]
    """
    values = [list(axis) for axis in axes.values()]
    rows = [tuple(map(_value, values, row)) for row in _rows([len(v) for v in values])]
    return pytest.mark.parametrize(tuple(axes), rows, ids=ids)


def each_value(**axes):
    """Parametrize so that each value is in some case; the longest axis says how many.

    It is for axes that have nothing to do with each other.

    >>> each_value(name=["a", "b", "c"], shape=[1, 2]).args[1]
    [('a', 1), ('b', 2), ('c', 1)]
    """
    values = [list(axis) for axis in axes.values()]
    most = max(map(len, values))
    rows = zip(*(islice(cycle(axis), most) for axis in values), strict=True)
    return pytest.mark.parametrize(tuple(axes), [*rows])


def _value(axis, index):
    return axis[index]


def _rows(lengths):
    """Yield rows of indices, each the one that has most pairs which none had before."""
    axes = range(len(lengths))
    missing = {
        (a, x, b, y)
        for a, b in combinations(axes, 2)
        for x, y in product(range(lengths[a]), range(lengths[b]))
    }
    every = [*product(*map(range, lengths))]
    while missing:
        best = max(every, key=lambda row: len(missing & _pairs(row)))
        missing -= _pairs(best)
        yield best


def _pairs(row):
    return {(a, row[a], b, row[b]) for a, b in combinations(range(len(row)), 2)}


BACKOFF = Backoff.fixed(0.5)
NO_RETRY = RetryDecision.no_retry()
URL = "http://localhost/"


class OwnError(Exception):
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


async def later(argument):
    return True
