"""Plan the wait for the next attempt."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from .._log.stop_reason import RetryStopReason

if TYPE_CHECKING:
    from .config import RetryConfig


class Wait(NamedTuple):
    """The decision to try again after some seconds."""

    delay: float
    source: Literal["backoff", "retry_after", "rate_limit"]


AT_ONCE = Wait(0.0, "backoff")
"""The decision to make the first attempt, for which nothing is waited."""

Decision: TypeAlias = Wait | RetryStopReason | None
"""What follows: a wait and an attempt, or the end; None ends a call that succeeded."""


def plan_wait(
    delay: float, hint: float, remaining: float, config: RetryConfig
) -> Wait | RetryStopReason:
    """Fit a delay between what the server asks for and what time is left.

    Args:
        delay: The seconds that the strategy wants to wait.
        hint: The seconds that the server asks to be left alone, or 0.
        remaining: The seconds left for the call.
        config: Knows the longest hint that is obeyed.

    Returns:
        The wait, which is never shorter than *delay* or *hint*; or why it is too long.
    """
    longest = config.max_retry_after
    if hint > (math.inf if longest is None else longest) or hint == math.inf:
        return RetryStopReason.RETRY_AFTER_TOO_LONG
    if delay >= remaining:
        return RetryStopReason.DEADLINE
    if hint >= remaining:
        return RetryStopReason.RETRY_AFTER_TOO_LONG
    # A Smithy strategy knows the hint, and may have put it into its delay.
    if hint and hint >= delay:
        return Wait(hint, "retry_after")
    return Wait(delay, "backoff")
