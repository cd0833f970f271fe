"""What is known to differ between smithy-python and this library."""

import copy
import csv
import math
from pathlib import Path

import pytest
from both_sides import SIDES

pytest.importorskip("smithy_core")  # which needs Python 3.12

DIFFERENCES = []
"""By row of the page: what shows it, and what it shows, a value or an exception."""

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "smithy-differences.csv"


def differs(row, theirs, ours):
    """Note that a function shows a difference on purpose, given one side."""

    def note(probe):
        known = pytest.param(probe, [theirs, ours], id=probe.__name__)
        DIFFERENCES.append((row, known))
        return probe

    return note


async def refreshed(side, error, strategy=None):
    """Exchange an initial token."""
    strategy = strategy or side.StandardRetryStrategy()
    token = await strategy.acquire_initial_retry_token()
    return await strategy.refresh_retry_token_for_retry(
        token_to_renew=token, error=error
    )


def steady(side):
    """Make a strategy whose first delay is a second."""
    return side.StandardRetryStrategy(
        backoff_strategy=side.ExponentialRetryBackoffStrategy(
            backoff_scale_value=1, jitter_type=side.ExponentialBackoffJitterType.NONE
        )
    )


@differs("the adaptive mode", "ValueError", "AdaptiveRetryStrategy")
async def adaptive_mode(side):
    options = side.RetryStrategyOptions(retry_mode="adaptive")
    resolver = side.RetryStrategyResolver()
    return type(await resolver.resolve_retry_strategy(retry_strategy=options)).__name__


@differs("a mode that does not exist", "off", "ValueError")
async def unknown_mode(side):
    return side.RetryStrategyOptions(retry_mode="off").retry_mode


@differs("``is_retry_safe`` is None", "RetryError", 1)
async def nobody_can_tell(side):
    return (await refreshed(side, side.CallError(fault="server"))).retry_count


@differs("an error without ``is_timeout_error``", "RetryError", 1)
async def three_attributes(side):
    class OldError(Exception):
        is_retry_safe = True
        retry_after = None
        is_throttling_error = False

    return (await refreshed(side, OldError())).retry_count


@differs("an ``is_retry_safe`` that is no bool", 1, "RetryError")
async def truth_that_is_no_bool(side):
    return (await refreshed(side, side.CallError(is_retry_safe="yes"))).retry_count


@differs("a token used twice", 28, "ValueError")
async def used_token(side):
    quota = side.StandardRetryQuota(initial_capacity=100)
    strategy = side.StandardRetryStrategy(retry_quota=quota)
    token = await strategy.acquire_initial_retry_token()
    for _ in range(2):
        await strategy.refresh_retry_token_for_retry(
            token_to_renew=token, error=side.ClientTimeoutError()
        )
    return 100 - quota.available_capacity


@differs("a token of another strategy", None, "ValueError")
async def foreign_token(side):
    token = await side.StandardRetryStrategy().acquire_initial_retry_token()
    return await side.StandardRetryStrategy().record_success(token=token)


@differs("a token of another strategy", None, "ValueError")
async def foreign_token_of_another_class(side):
    token = await side.StandardRetryStrategy().acquire_initial_retry_token()
    return await side.SimpleRetryStrategy().record_success(token=token)


@differs("a token made by hand", None, "ValueError")
async def token_made_by_hand(side):
    token = side.StandardRetryToken(retry_count=0, retry_delay=0.0)
    return await side.StandardRetryStrategy().record_success(token=token)


@differs("tokens that say the same", True, False)
async def equal_tokens(side):
    strategy = side.StandardRetryStrategy()
    first = await strategy.acquire_initial_retry_token()
    return first == await strategy.acquire_initial_retry_token()


async def retries_granted(side, strategy, scope):
    """Retry in a scope until there is no more token for it."""
    token = await strategy.acquire_initial_retry_token(token_scope=scope)
    error = side.CallError(is_retry_safe=True)
    try:
        while True:
            token = await strategy.refresh_retry_token_for_retry(
                token_to_renew=token, error=error
            )
    except side.RetryError:
        return token.retry_count


@differs("``token_scope``", [35, 0], [35, 35])
async def scopes(side):
    strategy = side.StandardRetryStrategy(max_attempts=100)
    return [await retries_granted(side, strategy, scope) for scope in ("a", "b")]


@differs("``DECORRELATED`` jitter", [5, 9.5, 16.25], [5, 5, 5])
async def decorrelated(side):
    backoff = side.ExponentialRetryBackoffStrategy(
        backoff_scale_value=2,
        jitter_type=side.ExponentialBackoffJitterType.DECORRELATED,
        random=lambda: 0.5,
    )
    return [backoff.compute_next_backoff_delay(1) for _ in range(3)]


@differs("retry 1025 and later", "OverflowError", 20.0)
async def late_retry(side):
    backoff = side.ExponentialRetryBackoffStrategy(
        jitter_type=side.ExponentialBackoffJitterType.NONE
    )
    return backoff.compute_next_backoff_delay(1025)


@differs("``SimpleRetryStrategy`` and ``retry_after``", False, True)
async def hint_in_the_simple_mode(side):
    error = side.CallError(is_retry_safe=True, retry_after=60.0)
    token = await refreshed(side, error, side.SimpleRetryStrategy())
    return token.retry_delay >= 60.0


@differs("a ``retry_after`` of infinity", 6.0, 1.0)
async def endless_hint(side):
    error = side.CallError(is_retry_safe=True, retry_after=math.inf)
    return (await refreshed(side, error, steady(side))).retry_delay


@differs("arguments out of range", 0, "ValueError")
async def arguments_out_of_range(side):
    return side.StandardRetryStrategy(max_attempts=0).max_attempts


@differs("arguments out of range", -1, "ValueError")
async def capacity_out_of_range(side):
    return side.StandardRetryQuota(initial_capacity=-1).available_capacity


@differs("a quota or a backoff that Python takes for false", 1, "RetryError")
async def false_quota(side):
    class Empty(side.StandardRetryQuota):
        def __bool__(self):
            return self.available_capacity > 0

    strategy = side.StandardRetryStrategy(retry_quota=Empty(initial_capacity=0))
    error = side.CallError(is_retry_safe=True)
    return (await refreshed(side, error, strategy)).retry_count


@differs("a copy of a quota or a strategy", False, True)
async def copied_quota(side):
    quota = side.StandardRetryQuota()
    return copy.copy(quota) is quota


@differs("``CallError`` objects that say the same", True, False)
async def equal_errors(side):
    return side.CallError("busy") == side.CallError("busy")


@differs("``CallError`` in a set", "TypeError", True)
async def hashed_error(side):
    return isinstance(hash(side.CallError("busy")), int)


@differs(
    "the base of the errors", ["SmithyError", "SmithyError"], ["Exception", "Exception"]
)
async def base_of_errors(side):
    return [kind.__mro__[1].__name__ for kind in (side.CallError, side.RetryError)]


@differs(
    "what a ``CallError`` knows of the response",
    ["response_metadata"],
    ["status", "code"],
)
async def what_errors_know(side):
    known = ("response_metadata", "status", "code")
    return [name for name in known if hasattr(side.CallError(), name)]


@differs("a strategy without ``backoff_strategy``", "TypeError", "Bare")
async def strategy_without_attributes(side):
    class Bare:
        async def acquire_initial_retry_token(self, *, token_scope=None): ...

        async def refresh_retry_token_for_retry(self, *, token_to_renew, error): ...

        async def record_success(self, *, token): ...

    resolver = side.RetryStrategyResolver()
    return type(await resolver.resolve_retry_strategy(retry_strategy=Bare())).__name__


OF_CLIENTS = {
    "methods of a strategy",
    "a 500, 502, 503 or 504 that no model describes, a failed connection",
    "a refused initial token",
    "what ``record_success`` raises",
    "``Retry-After``",
}
"""Rows about the clients around the strategies, which smithy-core does not show."""


@pytest.mark.parametrize(("probe", "results"), [known for _, known in DIFFERENCES])
async def test_known_difference(probe, results):
    """It is still one, on both sides as it is described."""
    happened = []
    for side in SIDES:
        try:
            happened.append(await probe(side))
        except Exception as error:
            happened.append(type(error).__name__)

    assert results == happened


def test_page_has_all_known_differences():
    """A row for each, and none that is no longer one."""
    with PAGE.open(encoding="utf-8", newline="") as file:
        rows = [row[""] for row in csv.DictReader(file)]

    assert sorted({row for row, _ in DIFFERENCES} | OF_CLIENTS) == sorted(rows)
