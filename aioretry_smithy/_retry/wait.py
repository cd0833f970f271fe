"""The decisions after an attempt: a wait of some seconds, or a stop."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, Literal, TypeAlias

from .. import _checks as check
from .._call.outcome import RetryStopReason
from .._call.time_limits import up_to_tick
from .._clock import chance

if TYPE_CHECKING:
    from collections.abc import Callable

    from .config import RetryConfig


@dataclass(slots=True)
class Wait:
    """The decision to try again after some seconds."""

    stops: ClassVar[Literal[False]] = False

    delay: float
    source: Literal["backoff", "retry_after", "rate_limit", "next_endpoint"]

    jitter: float | None = None
    """The most seconds added to a hint, if the hint is not the delay."""


@dataclass(slots=True)
class Stop:
    """The decision that there is no other attempt; None is the reason of a success."""

    stops: ClassVar[Literal[True]] = True

    reason: RetryStopReason | None


Decision: TypeAlias = Wait | Stop

AT_ONCE: Final = Wait(0.0, "backoff")
"""The decision to make an attempt now: the first one, or one that was waited for."""

SUCCEEDED: Final = Stop(None)
NOT_WANTED: Final = Stop(RetryStopReason.NO_RETRY)

TOO_LATE: Final = Stop(RetryStopReason.DEADLINE)
_TOO_LONG: Final = Stop(RetryStopReason.RETRY_AFTER_TOO_LONG)


def plan_wait(
    wait: Wait,
    retry_after: float,
    remaining: float,
    config: RetryConfig,
    tick: float = 0.0,
    random: Callable[[], float] = chance,
) -> Decision:
    """Choose the longer of two waits, or stop if it is too long.

    A part of the backoff is added to what a server asks for, so that those that it has
    sent away together do not come back together. Only what it asks for has to fit.

    Args:
        wait: What the strategy wants.
        retry_after: Seconds that the server asks to wait; 0 for none.
        remaining: Seconds left for the call.
        config: The settings.
        tick: Seconds by which a timer may fire early.
        random: Returns numbers in [0, 1).
    """
    delay = wait.delay
    is_usual = type(delay) is float and 0.0 <= delay < math.inf
    if not is_usual:
        check.not_negative("next_delay", delay, or_none=True)
    if retry_after:
        longest = config.max_retry_after
        most = math.inf if longest is None else longest
        return _with_hint(wait, retry_after, remaining, most, tick, random)
    return TOO_LATE if delay >= remaining else wait


def _with_hint(
    wait: Wait,
    retry_after: float,
    remaining: float,
    most: float,
    tick: float,
    random: Callable[[], float],
) -> Decision:
    if retry_after > most or retry_after == math.inf:
        return _TOO_LONG
    if wait.delay >= remaining:
        return TOO_LATE
    if retry_after >= remaining:
        return _TOO_LONG
    jitter = wait.delay if wait.jitter is None else wait.jitter
    added = random() * min(jitter, remaining - retry_after, most - retry_after)
    seconds = max(up_to_tick(retry_after, tick), retry_after + added)
    if seconds >= remaining:
        seconds = retry_after
    # ">=": a Smithy strategy may have used the hint as its delay.
    return Wait(seconds, "retry_after") if seconds >= wait.delay else wait
