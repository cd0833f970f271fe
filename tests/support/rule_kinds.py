"""Functions that make rules, and what meets their conditions."""

import asyncio
import functools

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
