"""Cut an attempt of a function when its time is up."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from .._call.time_limits import TimeLimits
from .._errors import ResponseTimeoutError
from .._failures.safety import peel

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._call.context import ClientRequestContext


class Cut:
    """Cancels the task of an attempt at its deadline, as :func:`asyncio.timeout` does.

    The cancellation is taken back when the attempt has ended, whatever was made of it.
    So ``cancelling()`` is as before, and one from outside is told from ours.

    Args:
        ctx: The attempt; or the call, where nothing retries. It has a deadline.
    """

    __slots__ = (
        "_before",
        "_handle",
        "_has_cancelled",
        "_is_named",
        "_limits",
        "_task",
    )

    def __init__(self, ctx: ClientRequestContext) -> None:
        task = asyncio.current_task()
        if task is None:
            message = "a function with a time limit runs in a task"
            raise RuntimeError(message)
        # None when the attempt is over.
        self._task: Any = task
        self._before = task.cancelling()
        self._has_cancelled = self._is_named = False
        self._arm(ctx)

    def _arm(self, ctx: ClientRequestContext) -> None:
        self._limits = limits = TimeLimits.of(ctx)
        when = limits.attempt_deadline
        self._handle = (
            None if when is None else ctx.log._call.loop.call_at(when, self._cancel)
        )

    def _cancel(self) -> None:
        self._has_cancelled = True
        self._task.cancel()

    def begin(self, ctx: ClientRequestContext) -> None:
        """Follow a deadline that was moved, and let nothing begin after it.

        Raises:
            ResponseTimeoutError: It has passed.
        """
        if ctx.deadline != self._limits.attempt_deadline and not self._has_cancelled:
            self._disarm()
            self._arm(ctx)
        passed = self._limits.passed()
        if passed is not None:
            self._is_named = True
            raise passed()

    def passed_by(self, cause: BaseException) -> Callable[[], Exception] | None:
        """Return what makes the error of the limit that ended an attempt; else None.

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
        elif not isinstance(peel(cause), ResponseTimeoutError):
            return None
        passed = self._limits.passed()
        self._is_named = passed is not None
        return passed

    def end(self) -> None:
        """Leave no timer and no cancellation behind."""
        self._disarm()
        if self._has_cancelled:
            self._take_back()
        # The frames of what is raised have this object, and the task has them.
        self._task = None

    def _disarm(self) -> None:
        if self._handle is not None:
            self._handle.cancel()

    def _take_back(self) -> bool:
        """Take our cancellation back; say whether there are others."""
        self._has_cancelled = False
        has_others: bool = self._task.uncancel() > self._before
        return has_others
