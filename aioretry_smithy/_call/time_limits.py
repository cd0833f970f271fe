"""Time limits of a call and its attempts, and errors for the limit that passed."""

from __future__ import annotations

import asyncio
import math
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from .._clock import NEAR
from .._errors import AttemptTimeoutError, ResponseTimeoutError

if TYPE_CHECKING:
    from collections.abc import Callable

    from .call import Call, Context
    from .record import Record


# uvloop counts in milliseconds, but has no attribute for that.
_TICK_OF_OTHER_LOOPS = 1e-3
IN_BODY = ", which passed while its body was read"


def time_left(call: Call, record: Record | None = None) -> float:
    """Return the seconds left for beginning a further attempt.

    A timer may fire up to one tick of the clock early, so the last tick before a
    deadline counts as passed.
    """
    deadline = call.deadline
    if record is not None and record is not call:
        deadline = call.deadline_of(record)
    if deadline is None:
        return math.inf
    return deadline - call.loop.time() - tick_of(call.loop)


class TimeLimits(NamedTuple):
    """The time limits of a call and its attempt."""

    call_started: float
    call_deadline: float | None
    attempt: int | None
    attempt_started: float
    attempt_deadline: float | None

    @classmethod
    def of(cls, ctx: Context) -> TimeLimits:
        """Return the current limits, without a reference to the call."""
        call, record = ctx.call, ctx.record
        return cls(
            call.started,
            call.deadline,
            ctx.attempt,
            record.attempt_started,
            call.deadline_of(record),
        )

    def passed(
        self, where: str = "", hint: str = ""
    ) -> Callable[[], ResponseTimeoutError] | None:
        """Return a function that makes the error of the passed limit; None for none.

        The *hint* says what to do about the limit of an attempt.

        Not the exception itself: a variable with it and its traceback form a cycle.
        """
        loop = asyncio.get_running_loop()
        now = loop.time() + tick_of(loop)
        deadline = self.call_deadline
        if deadline is not None and deadline <= now:
            seconds = deadline - self.call_started
            return partial(ResponseTimeoutError, f"the call had {seconds:.3f} s{where}")
        deadline = self.attempt_deadline
        if deadline is not None and deadline <= now:
            seconds = deadline - self.attempt_started
            message = f"attempt {self.attempt} had {seconds:.3f} s{where}{hint}"
            return partial(AttemptTimeoutError, message)
        return None


def passed_limit(
    ctx: Context, cause: BaseException, where: str = ""
) -> Callable[[], ResponseTimeoutError] | None:
    """Return a function that makes the error of the limit that cut an attempt.

    For a plain ``TimeoutError``, as aiohttp and asyncio raise it. None for a subclass,
    which itself says what timed out, and for an error before any limit has passed.
    """
    if type(cause) is not TimeoutError:
        return None
    return TimeLimits.of(ctx).passed(where)


def tick_of(loop: asyncio.AbstractEventLoop) -> float:
    """Return the seconds by which a timer of a loop may fire early."""
    resolution: float = getattr(loop, "_clock_resolution", _TICK_OF_OTHER_LOOPS)
    return resolution + NEAR


def up_to_tick(seconds: float, tick: float) -> float:
    """Return a wait of whole ticks, which is over early by no clock that has them."""
    tick -= NEAR
    if tick <= NEAR:
        return seconds
    # It begins within one tick, and may end at the beginning of one.
    return (math.ceil(seconds / tick - NEAR) + 1) * tick
