"""What is known to differ between smithy-python and this library."""

from __future__ import annotations

import copy
import csv
import math
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from smithy_vectors import SIDES

pytest.importorskip("smithy_core")  # which needs Python 3.12

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "smithy-differences.csv"


async def refreshed(side: Any, error: Exception, strategy: Any = None) -> Any:
    """Exchange an initial token."""
    strategy = strategy or side.StandardRetryStrategy()
    token = await strategy.acquire_initial_retry_token()
    return await strategy.refresh_retry_token_for_retry(
        token_to_renew=token, error=error
    )


def steady(side: Any) -> Any:
    """Make a strategy whose first delay is a second."""
    return side.StandardRetryStrategy(
        backoff_strategy=side.ExponentialRetryBackoffStrategy(
            backoff_scale_value=1, jitter_type=side.ExponentialBackoffJitterType.NONE
        )
    )


async def adaptive_mode(side):
    options = side.RetryStrategyOptions(retry_mode="adaptive")
    resolver = side.RetryStrategyResolver()
    return type(await resolver.resolve_retry_strategy(retry_strategy=options)).__name__


async def unknown_mode(side):
    return side.RetryStrategyOptions(retry_mode="off").retry_mode


async def nobody_can_tell(side):
    return (await refreshed(side, side.CallError(fault="server"))).retry_count


async def three_attributes(side):
    class OldError(Exception):
        is_retry_safe = True
        retry_after = None
        is_throttling_error = False

    return (await refreshed(side, OldError())).retry_count


async def truth_that_is_no_bool(side):
    return (await refreshed(side, side.CallError(is_retry_safe="yes"))).retry_count


async def used_token(side):
    quota = side.StandardRetryQuota(initial_capacity=100)
    strategy = side.StandardRetryStrategy(retry_quota=quota)
    token = await strategy.acquire_initial_retry_token()
    for _ in range(2):
        await strategy.refresh_retry_token_for_retry(
            token_to_renew=token, error=side.ClientTimeoutError()
        )
    return 100 - quota.available_capacity


async def foreign_token(side):
    token = await side.StandardRetryStrategy().acquire_initial_retry_token()
    return await side.StandardRetryStrategy().record_success(token=token)


async def foreign_token_of_another_class(side):
    token = await side.StandardRetryStrategy().acquire_initial_retry_token()
    return await side.SimpleRetryStrategy().record_success(token=token)


async def token_made_by_hand(side):
    token = side.StandardRetryToken(retry_count=0, retry_delay=0.0)
    return await side.StandardRetryStrategy().record_success(token=token)


async def equal_tokens(side):
    strategy = side.StandardRetryStrategy()
    first = await strategy.acquire_initial_retry_token()
    return first == await strategy.acquire_initial_retry_token()


async def retries_granted(side: Any, strategy: Any, scope: str) -> int:
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


async def scopes(side):
    strategy = side.StandardRetryStrategy(max_attempts=100)
    return [await retries_granted(side, strategy, scope) for scope in ("a", "b")]


async def decorrelated(side):
    backoff = side.ExponentialRetryBackoffStrategy(
        backoff_scale_value=2,
        jitter_type=side.ExponentialBackoffJitterType.DECORRELATED,
        random=lambda: 0.5,
    )
    return [backoff.compute_next_backoff_delay(1) for _ in range(3)]


async def late_retry(side):
    backoff = side.ExponentialRetryBackoffStrategy(
        jitter_type=side.ExponentialBackoffJitterType.NONE
    )
    return backoff.compute_next_backoff_delay(1025)


async def hint_in_the_simple_mode(side):
    error = side.CallError(is_retry_safe=True, retry_after=60.0)
    token = await refreshed(side, error, side.SimpleRetryStrategy())
    return token.retry_delay >= 60.0


async def endless_hint(side):
    error = side.CallError(is_retry_safe=True, retry_after=math.inf)
    return (await refreshed(side, error, steady(side))).retry_delay


async def arguments_out_of_range(side):
    return side.StandardRetryStrategy(max_attempts=0).max_attempts


async def capacity_out_of_range(side):
    return side.StandardRetryQuota(initial_capacity=-1).available_capacity


async def false_quota(side):
    class Empty(side.StandardRetryQuota):
        def __bool__(self):
            return self.available_capacity > 0

    strategy = side.StandardRetryStrategy(retry_quota=Empty(initial_capacity=0))
    error = side.CallError(is_retry_safe=True)
    return (await refreshed(side, error, strategy)).retry_count


async def copied_quota(side):
    quota = side.StandardRetryQuota()
    return copy.copy(quota) is quota


async def equal_errors(side):
    return side.CallError("busy") == side.CallError("busy")


async def hashed_error(side):
    return isinstance(hash(side.CallError("busy")), int)


async def base_of_errors(side):
    return [kind.__mro__[1].__name__ for kind in (side.CallError, side.RetryError)]


async def what_errors_know(side):
    known = ("response_metadata", "status", "code")
    return [name for name in known if hasattr(side.CallError(), name)]


async def strategy_without_attributes(side):
    class Bare:
        async def acquire_initial_retry_token(self, *, token_scope=None): ...

        async def refresh_retry_token_for_retry(self, *, token_to_renew, error): ...

        async def record_success(self, *, token): ...

    resolver = side.RetryStrategyResolver()
    return type(await resolver.resolve_retry_strategy(retry_strategy=Bare())).__name__


class Difference(NamedTuple):
    """One thing that is different on purpose."""

    row: str
    """How its row on the page begins."""

    probe: Callable[[Any], Awaitable[object]]
    """A function that shows it, given one side."""

    theirs: object
    """The result with smithy-python, a value or the name of an exception."""

    ours: object
    """The result here."""


DIFFERENCES = (
    Difference(
        "the adaptive mode", adaptive_mode, "ValueError", "AdaptiveRetryStrategy"
    ),
    Difference("a mode that does not exist", unknown_mode, "off", "ValueError"),
    Difference("``is_retry_safe`` is None", nobody_can_tell, "RetryError", 1),
    Difference(
        "an error without ``is_timeout_error``", three_attributes, "RetryError", 1
    ),
    Difference(
        "an ``is_retry_safe`` that is no bool", truth_that_is_no_bool, 1, "RetryError"
    ),
    Difference("a token used twice", used_token, 28, "ValueError"),
    Difference("a token of another strategy", foreign_token, None, "ValueError"),
    Difference(
        "a token of another strategy",
        foreign_token_of_another_class,
        None,
        "ValueError",
    ),
    Difference("a token made by hand", token_made_by_hand, None, "ValueError"),
    Difference("tokens that say the same", equal_tokens, True, False),
    Difference("``token_scope``", scopes, [35, 0], [35, 35]),
    Difference("``DECORRELATED`` jitter", decorrelated, [5, 9.5, 16.25], [5, 5, 5]),
    Difference("retry 1025 and later", late_retry, "OverflowError", 20.0),
    Difference(
        "``SimpleRetryStrategy`` and ``retry_after``",
        hint_in_the_simple_mode,
        False,
        True,
    ),
    Difference("a ``retry_after`` of infinity", endless_hint, 6.0, 1.0),
    Difference("arguments out of range", arguments_out_of_range, 0, "ValueError"),
    Difference("arguments out of range", capacity_out_of_range, -1, "ValueError"),
    Difference(
        "a quota or a backoff that Python takes for false", false_quota, 1, "RetryError"
    ),
    Difference("a copy of a quota or a strategy", copied_quota, False, True),
    Difference("``CallError`` objects that say the same", equal_errors, True, False),
    Difference("``CallError`` in a set", hashed_error, "TypeError", True),
    Difference(
        "the base of the errors",
        base_of_errors,
        ["SmithyError", "SmithyError"],
        ["Exception", "Exception"],
    ),
    Difference(
        "what a ``CallError`` knows of the response",
        what_errors_know,
        ["response_metadata"],
        ["status", "code"],
    ),
    Difference(
        "a strategy without ``backoff_strategy``",
        strategy_without_attributes,
        "TypeError",
        "Bare",
    ),
)
OF_CLIENTS = {
    "methods of a strategy",
    "a 500, 502, 503 or 504 that no model describes, a failed connection",
    "a refused initial token",
    "what ``record_success`` raises",
    "``Retry-After``",
}
"""Rows about the clients around the strategies, which smithy-core does not show."""


@pytest.mark.parametrize(
    "difference", DIFFERENCES, ids=lambda difference: difference.probe.__name__
)
async def test_known_difference(difference):
    """It is still one, on both sides as it is described."""
    happened = []
    for side in SIDES:
        try:
            happened.append(await difference.probe(side))
        except Exception as error:
            happened.append(type(error).__name__)

    assert [difference.theirs, difference.ours] == happened


def test_page_has_all_known_differences():
    """A row for each, and none that is no longer one."""
    with PAGE.open(encoding="utf-8", newline="") as file:
        rows = [row[""] for row in csv.DictReader(file)]

    assert sorted({each.row for each in DIFFERENCES} | OF_CLIENTS) == sorted(rows)
