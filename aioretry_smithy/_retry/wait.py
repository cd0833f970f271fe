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
"""The decision to make the first attempt, without a wait."""

Decision: TypeAlias = Wait | RetryStopReason | None
"""Wait for another attempt, or stop; None ends a call that succeeded."""


def plan_wait(
    delay: float, hint: float, remaining: float, config: RetryConfig
) -> Wait | RetryStopReason:
    """Choose the longer of delay and hint, or stop if it is too long.

    The strategy wants to wait for the *delay*, and the server asks for the *hint*, 0
    if it does not. *remaining* are the seconds left for the call.
    """
    longest = config.max_retry_after
    if hint > (math.inf if longest is None else longest) or hint == math.inf:
        return RetryStopReason.RETRY_AFTER_TOO_LONG
    if delay >= remaining:
        return RetryStopReason.DEADLINE
    if hint >= remaining:
        return RetryStopReason.RETRY_AFTER_TOO_LONG
    # ">=": a Smithy strategy may have used the hint as its delay.
    if hint and hint >= delay:
        return Wait(hint, "retry_after")
    return Wait(delay, "backoff")
