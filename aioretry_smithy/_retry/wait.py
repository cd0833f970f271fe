"""Decide whether to wait for the next attempt, and how long."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, Literal, TypeAlias

from .._call.stop_reason import RetryStopReason

if TYPE_CHECKING:
    from .config import RetryConfig


@dataclass(slots=True)
class Wait:
    """The decision to try again after some seconds."""

    stops: ClassVar[Literal[False]] = False

    delay: float
    source: Literal["backoff", "retry_after", "rate_limit"]


@dataclass(slots=True)
class Stop:
    """The decision that there is no other attempt; None is the reason of a success."""

    stops: ClassVar[Literal[True]] = True

    reason: RetryStopReason | None


Decision: TypeAlias = Wait | Stop

AT_ONCE: Final = Wait(0.0, "backoff")
"""The decision to make the first attempt, without a wait."""

LATER: Final = Stop(None)
"""In place of a decision: it may take a wait."""

SUCCEEDED: Final = Stop(None)
NOT_WANTED: Final = Stop(RetryStopReason.NO_RETRY)


def plan_wait(
    delay: float, retry_after: float, remaining: float, config: RetryConfig
) -> Decision:
    """Choose the longer of two waits, or stop if it is too long.

    The strategy wants to wait for the *delay*, and the server for *retry_after*, 0 if
    it does not ask. *remaining* are the seconds left for the call.
    """
    longest = config.max_retry_after
    if (
        retry_after > (math.inf if longest is None else longest)
        or retry_after == math.inf
    ):
        return Stop(RetryStopReason.RETRY_AFTER_TOO_LONG)
    if delay >= remaining:
        return Stop(RetryStopReason.DEADLINE)
    if retry_after >= remaining:
        return Stop(RetryStopReason.RETRY_AFTER_TOO_LONG)
    # ">=": a Smithy strategy may have used that as its delay.
    if retry_after and retry_after >= delay:
        return Wait(retry_after, "retry_after")
    return Wait(delay, "backoff")
