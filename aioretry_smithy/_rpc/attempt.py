"""Run an attempt of a function: its time limit, and the calls that are part of it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from .._call.hooks import Hooks
from .._call.recorder import note_request, record_failure, record_return
from .._call.time_limits import TimeLimits, time_left
from .._context.client import derived
from .._context.context import state_of
from .._context.enclosing import EnclosingAttempt
from .._context.loop import ONCE, Row, on_its_way, run
from .._context.options import leave_attempt
from .._context.sender import Sender
from .._errors import ResponseTimeoutError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextvars import Token

    from .._call.call import Call
    from .._call.hooks import Scope
    from .._call.record import Record
    from .._context.context import ClientRequestContext
    from .._context.options import Options
    from .._request.rpc_request import RpcRequest


class AttemptTimeout:
    """Cancels the task of an attempt at its deadline, as :func:`asyncio.timeout` does.

    The cancellation is taken back when the attempt has ended, in any way.
    So ``cancelling()`` is as before, and one from outside is told from ours.

    Args:
        loop: The event loop.
        deadline: When.
    """

    is_of_function: bool
    """Whether it ends with the function, because only a decorator has set a limit."""

    is_named: bool
    """Whether the error of the limit was raised, so that no second one is."""

    __slots__ = (
        "_before",
        "_deadline",
        "_handle",
        "_has_cancelled",
        "_task",
        "is_named",
        "is_of_function",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop, deadline: float) -> None:
        task = asyncio.current_task()
        if task is None:
            message = "a function with a time limit runs in a task"
            raise RuntimeError(message)
        self._task: asyncio.Task[object] = task
        self._before = task.cancelling()
        self._has_cancelled = self.is_named = self.is_of_function = False
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
        """Take our cancellation back; return whether there are others."""
        self._has_cancelled = False
        return self._task.uncancel() > self._before


class _Begun(NamedTuple):
    """The parts of an attempt that have begun, and have to end."""

    timeout: AttemptTimeout | None
    enclosing: EnclosingAttempt
    token: Token[Options | None]


class FunctionAttempts(Hooks):
    """Lets each attempt end at its deadline, and the calls inside be part of it.

    They stand right inside a retrying client; where nothing retries, outside of all.
    """

    __slots__ = ()

    def enter(self, call: Call, scope: Scope, request: object) -> _Begun:
        """Begin an attempt."""
        timeout, deadline = None, call.deadline_of(scope.record)
        if deadline is not None:
            timeout = scope.cut = AttemptTimeout(call.loop, deadline)
        enclosing = EnclosingAttempt(call, scope)
        return _Begun(timeout, enclosing, enclosing.enter())

    def leave(
        self,
        call: Call,
        scope: Scope,
        permit: _Begun,
        result: object,
        cause: Exception | None,
    ) -> None:
        """End the attempt."""
        self.cancel(call, scope, permit, cause)

    def cancel(
        self, call: Call, scope: Scope, permit: _Begun, cause: BaseException | None
    ) -> None:
        """End the attempt, which its deadline may have cut."""
        try:
            # The limit of a decorator; the function's own client has named the rest.
            cause = None if cause is None else _limit_error(call, scope, cause)
            if cause is not None:
                record_failure(call, scope.record, cause)
                raise cause
        finally:
            scope.cut = None
            permit.enclosing.end()
            leave_attempt(permit.token)
            if permit.timeout is not None:
                permit.timeout.end()
            del cause


class FunctionClient(Sender):
    """Calls the function at the end of its chain, and records the outcome.

    Args:
        function: The coroutine function.
    """

    __slots__ = ("_function",)

    def __init__(self, function: Callable[..., Awaitable[object]]) -> None:
        self._function = function

    @derived
    async def execute(self, ctx: ClientRequestContext, request: RpcRequest) -> object:
        """Call the function with the arguments of *request*."""
        row = Row((), ONCE, (), self)
        return await run(on_its_way, (row, *state_of(ctx), request))

    def start(self, call: Call, scope: Scope, request: RpcRequest) -> Awaitable[object]:
        """Begin to call the function, if there is time.

        Where a decorator has set a limit and there was none, it ends with the function.

        Raises:
            ResponseTimeoutError: There is none: nothing begins after a deadline.
        """
        timeout: AttemptTimeout | None = scope.cut
        record = scope.record
        if request is not scope.to_send or record.sent_request is not None:
            note_request(scope, request)
        deadline, loop = call.deadline_of(record), call.loop
        if timeout is not None:
            timeout.follow(loop, deadline)
        if deadline is not None:
            if time_left(call, record) <= 0:
                if timeout is not None:
                    timeout.is_named = True
                raise _error_of(TimeLimits.of(call, scope))
            if timeout is None:
                scope.cut = timeout = AttemptTimeout(loop, deadline)
                timeout.is_of_function = True
        # The function may send anything.
        record.was_sent = True
        return self._function(*request.args, **request.kwargs)

    def answered(
        self, call: Call, scope: Scope, record: Record, result: object
    ) -> None:
        """Record that the function returned."""
        _end_timeout_of_function(scope)
        record_return(call, record)

    async def failed(
        self,
        call: Call,
        scope: Scope,
        record: Record,
        request: RpcRequest,
        cause: BaseException,
    ) -> object:
        """Name the limit that has passed, if one has; record the failure."""
        try:
            cause = _limit_error(call, scope, cause) or cause
            record_failure(call, record, cause)
            raise cause
        finally:
            _end_timeout_of_function(scope)
            # It has this frame, which must not have it.
            del cause


def _end_timeout_of_function(scope: Scope) -> None:
    timeout: AttemptTimeout | None = scope.cut
    if timeout is not None and timeout.is_of_function:
        scope.cut = None
        timeout.end()


def _limit_error(call: Call, scope: Scope, cause: BaseException) -> Exception | None:
    """Return the error for a limit that ended an attempt, or None."""
    timeout: AttemptTimeout | None = scope.cut
    limits = TimeLimits.of(call, scope)
    if timeout is None or not timeout.has_ended(cause, limits):
        return None
    timeout.is_named = True
    error = _error_of(limits)
    error.__cause__ = error.__context__ = cause
    return error


def _is_out_of_time(cause: BaseException) -> bool:
    # Calls that a task group makes at once end at once.
    if isinstance(cause, BaseExceptionGroup):
        return all(map(_is_out_of_time, cause.exceptions))
    return isinstance(cause, ResponseTimeoutError)


def _error_of(limits: TimeLimits) -> Exception:
    # A limit may have been moved since.
    make_error = limits.passed() or ResponseTimeoutError
    return make_error()
