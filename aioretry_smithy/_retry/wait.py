"""Decide whether to wait for the next attempt, and how long."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, Literal, TypeAlias

from .._call.stop_reason import RetryStopReason
from .._errors import bad_argument, is_finite

if TYPE_CHECKING:
    from .config import RetryConfig


@dataclass(slots=True)
class Wait:
    """The decision to try again after some seconds."""

    stops: ClassVar[Literal[False]] = False

    delay: float
    source: Literal["backoff", "retry_after", "rate_limit", "next_endpoint"]


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


_TOO_LATE: Final = Stop(RetryStopReason.DEADLINE)
_TOO_LONG: Final = Stop(RetryStopReason.RETRY_AFTER_TOO_LONG)


def plan_wait(
    wait: Wait, retry_after: float, remaining: float, config: RetryConfig
) -> Decision:
    """Choose the longer of two waits, or stop if it is too long.

    The strategy wants to *wait*, and the server to be left alone for *retry_after*, 0
    if it does not ask. *remaining* are the seconds left for the call.
    """
    delay, longest = wait.delay, config.max_retry_after
    is_usual = type(delay) is float and 0.0 <= delay < math.inf
    if not is_usual and not (is_finite(delay) and delay >= 0):
        raise bad_argument("next_delay", delay, "seconds, finite and >= 0, or None")
    if retry_after and (
        retry_after > (math.inf if longest is None else longest)
        or retry_after == math.inf
    ):
        return _TOO_LONG
    if delay >= remaining:
        return _TOO_LATE
    # ">=": a Smithy strategy may have used that as its delay.
    if not retry_after or retry_after < delay:
        return wait
    return _TOO_LONG if retry_after >= remaining else Wait(retry_after, "retry_after")
