"""Cut users' code off at the deadline of a call."""

from __future__ import annotations

import asyncio
from contextvars import Context as Variables
from typing import TYPE_CHECKING, Any, Final

from .._errors import ResponseTimeoutError
from .time_limits import TimeLimits

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from .call import Call, Context

GRACE: Final = 0.01
"""Seconds between the deadline and the cut, for requests to raise their own error."""

_TURNS: Final = 30
"""Turns of the event loop after the grace, for the error to come up through the tasks.

On a busy machine the process may have stood still for all of the grace. Counted in
turns, and not in time that a busy loop never has: its timers are always late.
"""


CUT: Final = object()
"""The placeholder for the result of code that the deadline has cut."""


class DeadlineCut:
    """Cancels one task after the deadline of a call, while it is in a user's code.

    The cancellation is taken back where the code ends, which distinguishes it from one
    from outside. All code of a call that is nested in one task shares one timer.

    Args:
        call: The call.
        task: The task.
        grace: Seconds that it waits after the deadline, before it counts turns.
    """

    __slots__ = (
        "_before",
        "_call",
        "_fired",
        "_grace",
        "_handle",
        "_task",
        "depth",
        "held",
    )

    depth: int
    """The number of nested pieces of a user's code under way in the task."""

    held: int
    """The number of nested steps that keep the deadline by themselves; no cut then."""

    def __init__(self, call: Call, task: asyncio.Task[Any], grace: float) -> None:
        self._call = call
        self._task = task
        self._before = task.cancelling()
        self._grace = grace
        self._fired = False
        self._handle: asyncio.Handle | None = None
        self.depth = self.held = 0
        deadline = call.deadline
        if deadline is not None:
            self._wait(deadline + grace)

    def follow(self) -> None:
        """Wait for the deadline that the call has now."""
        deadline = self._call.deadline
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        if deadline is not None and not self._fired:
            self._wait(deadline + self._grace)

    def _wait(self, when: float) -> None:
        # A timer that was cancelled keeps its context variables until it is due.
        self._handle = self._call.loop.call_at(when, self._fire, context=Variables())

    def _fire(self, turns: int | None = None) -> None:
        loop = self._call.loop
        if turns is None:
            # What has less grace has fewer turns, too, where all timers are late.
            turns = round(_TURNS * self._grace / GRACE)
        if self.held:
            self._wait(loop.time() + self._grace)
        elif turns:
            self._handle = loop.call_soon(self._fire, turns - 1)
        else:
            self._handle = None
            self._fired = True
            self._task.cancel()

    def take_back(self, *, inside: bool = False) -> bool:
        """Undo the cancellation; say whether it was ours, and the only one.

        If that is *inside* of the innermost code, all of it may wait on.
        """
        if not self._fired:
            return False
        self._fired = False
        if self._task.uncancel() > self._before:
            return False
        if inside or self.depth > 1:
            self._wait(self._call.loop.time() + self._grace)
        return True

    def end(self) -> None:
        """Leave neither a timer nor a cancellation behind."""
        if self._handle is not None:
            self._handle.cancel()
        if self._fired:
            # The code has made something else of it.
            self._task.uncancel()
        # The frames of what was raised have this object, and the task has the frames.
        del self._task, self._call, self._handle


def is_cut(call: Call, cause: BaseException) -> bool:
    """Say whether a deadline cuts the code around, and take the cancellation back.

    For what is ours inside of a user's code, and has no limit of its own.
    """
    if not isinstance(cause, asyncio.CancelledError):
        return False
    cut = cut_of(call)
    return cut is not None and cut.take_back(inside=True)


def cut_of(call: Call) -> DeadlineCut | None:
    """Return the deadline cut of the current task; None without a deadline."""
    cuts = call.deadline_cuts
    return cuts.get(asyncio.current_task()) if cuts else None


async def until_deadline(
    ctx: Context, code: Awaitable[Any], *, raises: bool = False
) -> Any:
    """Await code of the user; return :data:`CUT` if cut off by the deadline.

    Its ``finally`` runs. What it returns or raises in spite of that stands.

    Args:
        ctx: What it is awaited for.
        code: What is awaited.
        raises: Whether to raise what says that the deadline has passed.

    Raises:
        ResponseTimeoutError: The deadline has cut it.
    """
    task = asyncio.current_task()
    if ctx.cut is not None or task is None:
        # The attempt of a function has a limit that covers all of it.
        return await code
    call = ctx.call
    cuts = call.deadline_cuts
    if cuts is None:
        cuts = call.deadline_cuts = {}
    cut = cuts.get(task)
    if cut is None:
        # A task inside another one ends first.
        cut = cuts[task] = DeadlineCut(call, task, GRACE / (1 + len(cuts)))
    cut.depth += 1
    try:
        return await code
    except asyncio.CancelledError as cancelled:
        if not cut.take_back():
            raise
        if not raises:
            return CUT
        make_error = TimeLimits.of(ctx).passed() or ResponseTimeoutError
        raise make_error() from cancelled
    finally:
        cut.depth -= 1
        if not cut.depth:
            del cuts[task]
            cut.end()
        # The frames of what was raised must keep neither.
        del task, cut
