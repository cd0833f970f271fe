"""Run an attempt of a function: its time limit, and the calls that are part of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._call.hooks import Hooks
from .._call.recorder import record_failure
from .._context.enclosing import EnclosingAttempt
from .._context.options import leave_attempt
from .cut import Cut, passed_by

if TYPE_CHECKING:
    from contextvars import Token

    from .._call.call import Call
    from .._call.hooks import Scope


class _Begun:
    """The parts of an attempt that have begun, and have to end."""

    __slots__ = ("cut", "enclosing", "token")

    def __init__(
        self, cut: Cut | None, enclosing: EnclosingAttempt, token: Token[Any]
    ) -> None:
        self.cut = cut
        self.enclosing = enclosing
        self.token = token


class FunctionAttempts(Hooks):
    """Lets each attempt end at its deadline, and the calls inside be part of it.

    They stand right inside a retrying client; where nothing retries, outside of all.
    """

    __slots__ = ()

    def enter(self, call: Call, scope: Scope, request: Any) -> _Begun:
        """Begin an attempt."""
        cut, deadline = None, call.deadline_of(scope.record)
        if deadline is not None:
            cut = scope.cut = Cut(call.loop, deadline)
        enclosing = EnclosingAttempt(call, scope)
        return _Begun(cut, enclosing, enclosing.enter())

    def leave(
        self,
        call: Call,
        scope: Scope,
        permit: _Begun,
        result: Any,
        cause: Exception | None,
    ) -> None:
        """End the attempt."""
        self._end(call, scope, permit, cause)

    def cancel(
        self, call: Call, scope: Scope, permit: _Begun, cause: BaseException
    ) -> None:
        """End the attempt, which its deadline may have cut."""
        self._end(call, scope, permit, cause)

    def _end(
        self, call: Call, scope: Scope, permit: _Begun, cause: BaseException | None
    ) -> None:
        try:
            # The cut of a decorator; the function's own client has named the rest.
            passed = None if cause is None else passed_by(call, scope, cause)
            if passed is not None:
                cut, cause = cause, passed()
                cause.__cause__ = cause.__context__ = cut
                del cut
                record_failure(call, scope.record, cause)
                raise cause
        finally:
            scope.cut = None
            permit.enclosing.end()
            leave_attempt(permit.token)
            if permit.cut is not None:
                permit.cut.end()
            del cause
