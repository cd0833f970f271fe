"""Cut an attempt of a function when its time is up."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from .._call.time_limits import TimeLimits, time_left
from .._errors import ResponseTimeoutError

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._call.attempt import Attempt
    from .._call.call import Call


class Cut:
    """Cancels the task of an attempt at its deadline, as :func:`asyncio.timeout` does.

    The cancellation is taken back when the attempt has ended, in any way.
    So ``cancelling()`` is as before, and one from outside is told from ours.

    Args:
        loop: The event loop.
        deadline: When.
    """

    is_of_function: bool
    """Whether it ends with the function, because only a decorator has set a limit."""

    __slots__ = (
        "_before",
        "_deadline",
        "_handle",
        "_has_cancelled",
        "_is_named",
        "_task",
        "is_of_function",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop, deadline: float) -> None:
        task = asyncio.current_task()
        if task is None:
            message = "a function with a time limit runs in a task"
            raise RuntimeError(message)
        # None when the attempt is over.
        self._task: Any = task
        self._before = task.cancelling()
        self._has_cancelled = self._is_named = self.is_of_function = False
        self._deadline: float | None = deadline
        self._handle = loop.call_at(deadline, self._cancel)

    def _cancel(self) -> None:
        self._has_cancelled = True
        self._task.cancel()

    def follow(self, loop: asyncio.AbstractEventLoop, deadline: float | None) -> None:
        """Cancel at a deadline that was moved."""
        if deadline != self._deadline and not self._has_cancelled:
            self._handle.cancel()
            self._deadline = deadline
            if deadline is not None:
                self._handle = loop.call_at(deadline, self._cancel)

    def name(self) -> None:
        """Note that the error of the limit was raised, so that no second one is."""
        self._is_named = True

    def passed_by(
        self, cause: BaseException, limits: TimeLimits
    ) -> Callable[[], Exception] | None:
        """Return a maker of the error for a limit that ended an attempt, or None.

        A call inside has no more time than the attempt, so where its deadline ends it,
        that may be the limit of the attempt.
        """
        if self._is_named:
            return None
        if isinstance(cause, asyncio.CancelledError):
            if not self._has_cancelled or asyncio.current_task() is not self._task:
                return None
            if self._take_back():
                # Cancelled from outside as well, in that very moment.
                return None
        elif not _is_out_of_time(cause) or not limits.passed():
            return None
        self._is_named = True
        return _error_of(limits)

    def end(self) -> None:
        """Leave no timer and no cancellation behind."""
        self._handle.cancel()
        if self._has_cancelled:
            self._take_back()
        # The frames of the error have this object, and the task has the frames.
        self._task = None

    def _take_back(self) -> bool:
        """Take our cancellation back; return whether there are others."""
        self._has_cancelled = False
        has_others: bool = self._task.uncancel() > self._before
        return has_others


def begin(call: Call, scope: Call | Attempt) -> None:
    """Follow a deadline that a decorator has moved, and let nothing begin after it.

    Where a decorator has set a limit and there was none, it ends with the function.

    Raises:
        ResponseTimeoutError: It has passed.
    """
    cut: Cut | None = scope.cut
    deadline, loop = call.deadline_of(scope.record), call.loop
    if cut is not None:
        cut.follow(loop, deadline)
    if deadline is None:
        return
    if time_left(call, scope.record) <= 0:
        if cut is not None:
            cut.name()
        error = _error_of(TimeLimits.of(call, scope))
        raise error()
    if cut is None:
        scope.cut = cut = Cut(loop, deadline)
        cut.is_of_function = True


def passed_by(
    call: Call, scope: Call | Attempt, cause: BaseException
) -> Callable[[], Exception] | None:
    """Return a maker of the error for a limit that ended an attempt, or None."""
    cut: Cut | None = scope.cut
    return None if cut is None else cut.passed_by(cause, TimeLimits.of(call, scope))


def _is_out_of_time(cause: BaseException) -> bool:
    # Calls that a task group makes at once end at once.
    if isinstance(cause, BaseExceptionGroup):
        return all(map(_is_out_of_time, cause.exceptions))
    return isinstance(cause, ResponseTimeoutError)


def _error_of(limits: TimeLimits) -> Callable[[], Exception]:
    # A limit may have been moved since.
    return limits.passed() or ResponseTimeoutError
