"""Call a function at the end of its chain, in an attempt with a time limit."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from .._call.deadline_cut import cut_of
from .._call.recorder import note_request, record_failure, record_return
from .._call.time_limits import TimeLimits, time_left
from .._context.client import DecoratingClient, RpcClient
from .._context.options import EnclosingAttempt, leave_attempt
from .._errors import ResponseTimeoutError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from .._context.context import ClientRequestContext
    from .._request.request import RpcRequest


class OneAttempt(DecoratingClient[RpcClient]):
    """Runs a call as a single attempt, without retries."""

    async def execute(self, ctx: ClientRequestContext, request: RpcRequest) -> object:
        """Call the function, as an attempt."""
        return await attempted(self.delegate, ctx, request)


async def attempted(
    delegate: RpcClient, ctx: ClientRequestContext, request: RpcRequest
) -> object:
    """Make an attempt: end it at its deadline, and let the calls inside be part of it.

    It stands right inside a retrying client; where nothing retries, outside of all.
    """
    timeout, deadline, around = None, ctx.deadline, cut_of(ctx.call)
    if around is not None:
        around.held += 1
    if deadline is not None:
        timeout = ctx.cut = AttemptTimeout(ctx.call.loop, deadline)
    enclosing = EnclosingAttempt(ctx)
    token = enclosing.enter()
    try:
        return await delegate.execute(ctx, request)
    except BaseException as cause:
        # The limit of a decorator; the function's own client has named the rest.
        error = _limit_error(ctx, cause)
        if error is None:
            raise
        try:
            record_failure(ctx, error)
            raise error from cause
        finally:
            # Its traceback has this frame: no cycle.
            del error
    finally:
        ctx.cut = None
        enclosing.end()
        leave_attempt(token)
        if timeout is not None:
            timeout.end()
        if around is not None:
            around.held -= 1


class FunctionClient:
    """Calls the function at the end of its chain, and records the outcome.

    Args:
        function: The coroutine function.
    """

    __slots__ = ("_function",)

    def __init__(self, function: Callable[..., Awaitable[object]]) -> None:
        self._function = function

    async def execute(self, ctx: ClientRequestContext, request: RpcRequest) -> object:
        """Call the function with the arguments of *request*, if there is time.

        Where a decorator has set a limit and there was none, it ends with the function.

        Raises:
            ResponseTimeoutError: There is none: nothing begins after a deadline.
        """
        call, record = ctx.call, ctx.record
        try:
            self._begin(ctx, request)
            result = await self._function(*request.args, **request.kwargs)
        except BaseException as cause:
            error = _limit_error(ctx, cause)
            try:
                record_failure(ctx, error or cause)
                if error is None:
                    raise
                raise error from cause
            finally:
                # Its traceback has this frame: no cycle.
                del error
        finally:
            timeout: AttemptTimeout | None = ctx.cut
            if timeout is not None and timeout.is_of_function:
                ctx.cut = None
                timeout.end()
        record_return(call, record)
        return result

    def _begin(self, ctx: ClientRequestContext, request: RpcRequest) -> None:
        """Begin a call of the function, with its deadline."""
        call, record = ctx.call, ctx.record
        timeout: AttemptTimeout | None = ctx.cut
        if request is not ctx.request or record.sent_request is not None:
            note_request(ctx, request)
        deadline, loop = ctx.deadline, call.loop
        if timeout is not None:
            timeout.follow(loop, deadline)
        if deadline is not None:
            if time_left(call, record) <= 0:
                if timeout is not None:
                    timeout.is_named = True
                raise _error_of(TimeLimits.of(ctx))
            if timeout is None:
                ctx.cut = timeout = AttemptTimeout(loop, deadline)
                timeout.is_of_function = True
        # The function may send anything.
        record.was_sent = True


class AttemptTimeout:
    """Cancels the task of an attempt at its deadline, as :func:`asyncio.timeout` does.

    The cancellation is taken back when the attempt has ended, in any way.
    So ``cancelling()`` is as before, and one from outside is no timeout.

    Args:
        loop: The event loop.
        deadline: When.
    """

    is_of_function = False
    """Whether it ends with the function, because only a decorator has set a limit."""

    is_named = False
    """Whether the error of the limit was raised, to avoid a second error."""

    _has_cancelled = False

    def __init__(self, loop: asyncio.AbstractEventLoop, deadline: float) -> None:
        task = asyncio.current_task()
        if task is None:
            message = "a function with a time limit runs in a task"
            raise RuntimeError(message)
        self._task: asyncio.Task[object] = task
        self._before = task.cancelling()
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

    def has_ended(self, cause: BaseException, limits: TimeLimits) -> bool:
        """Say whether a limit ended the attempt, and its error is not raised yet.

        A call inside has no more time than the attempt, so where its deadline ends it,
        that may be the limit of the attempt.
        """
        if self.is_named:
            return False
        if isinstance(cause, asyncio.CancelledError):
            is_ours = self._has_cancelled and asyncio.current_task() is self._task
            # Cancelled from outside as well, in that very moment, it is not.
            return is_ours and not self._take_back()
        return _is_out_of_time(cause) and limits.passed() is not None

    def end(self) -> None:
        """Leave no timer and no cancellation behind."""
        self._handle.cancel()
        if self._has_cancelled:
            self._take_back()
        # The frames of the error have this object, and the task has the frames.
        del self._task

    def _take_back(self) -> bool:
        """Undo our own cancellation; say whether others are pending."""
        self._has_cancelled = False
        return self._task.uncancel() > self._before


def _limit_error(ctx: ClientRequestContext, cause: BaseException) -> Exception | None:
    """Return the error for a limit that ended an attempt, or None."""
    timeout: AttemptTimeout | None = ctx.cut
    limits = TimeLimits.of(ctx)
    if timeout is None or not timeout.has_ended(cause, limits):
        return None
    timeout.is_named = True
    return _error_of(limits)


def _is_out_of_time(cause: BaseException) -> bool:
    # Calls that a task group makes at once end at once.
    if isinstance(cause, BaseExceptionGroup):
        return all(map(_is_out_of_time, cause.exceptions))
    return isinstance(cause, ResponseTimeoutError)


def _error_of(limits: TimeLimits) -> Exception:
    # A limit may have been moved since.
    make_error = limits.passed() or ResponseTimeoutError
    return make_error()
