"""Call the function at the end of its chain, and record the outcome."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._call.recorder import record_failure, record_return
from .._context.client import derived
from .._context.context import state_of
from .._context.ending import ONCE
from .._context.loop import run
from .._context.row import Row
from .._context.sender import Sender
from .cut import begin, passed_by

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from .._call.call import Call
    from .._call.hooks import Scope
    from .._call.record import Record
    from .._context.context import ClientRequestContext
    from .._request.rpc_request import RpcRequest


class FunctionClient(Sender):
    """Calls a function.

    Args:
        function: The coroutine function.
    """

    __slots__ = ("_function",)

    def __init__(self, function: Callable[..., Awaitable[Any]]) -> None:
        self._function = function

    @derived
    async def execute(self, ctx: ClientRequestContext, request: RpcRequest) -> Any:
        """Call the function with the arguments of *request*."""
        return await run(Row((), ONCE, (), self), *state_of(ctx), request)

    def start(self, call: Call, scope: Scope, request: RpcRequest) -> Awaitable[Any]:
        """Begin to call the function, if there is time."""
        begin(call, scope)
        # The function may send anything.
        scope.record.was_sent = True
        return self._function(*request.args, **request.kwargs)

    def answered(
        self, call: Call, scope: Scope, record: Record, result: object
    ) -> None:
        """Record that the function returned."""
        _end(scope)
        record_return(call, record)

    async def failed(
        self,
        call: Call,
        scope: Scope,
        record: Record,
        request: RpcRequest,
        cause: BaseException,
    ) -> Any:
        """Name the limit that has passed, if one has; record the failure."""
        try:
            passed = passed_by(call, scope, cause)
            if passed is not None:
                cut, cause = cause, passed()
                cause.__cause__ = cause.__context__ = cut
                del cut
            record_failure(call, record, cause)
            raise cause
        finally:
            _end(scope)
            # It has this frame, which must not have it.
            del cause


def _end(scope: Scope) -> None:
    """End the cut that was begun for the function alone."""
    cut = scope.cut
    if cut is not None and cut.is_of_function:
        scope.cut = None
        cut.end()
