"""Call the function at the end of its chain, and record the outcome."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .cut import begin, passed_by

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from .._call.context import ClientRequestContext
    from .._request.rpc_request import RpcRequest


class FunctionClient:
    """Calls a function.

    Args:
        function: The coroutine function.
    """

    __slots__ = ("_function",)

    def __init__(self, function: Callable[..., Awaitable[Any]]) -> None:
        self._function = function

    async def execute(self, ctx: ClientRequestContext, request: RpcRequest) -> Any:
        """Call the function with the arguments of *request*."""
        log, cut, root = ctx.log, None, ctx.parent or ctx
        # A function that the quick lane has called is not called again.
        first, root._first_attempt = root._first_attempt, None
        try:
            try:
                if first is None:
                    cut = begin(ctx)
                # The function may send anything.
                log._sent = True
                if first is not None:
                    await first.outcome()
                result = await self._function(*request.args, **request.kwargs)
            except BaseException as cause:
                if (passed := passed_by(ctx, cause)) is None:
                    raise
                raise passed() from cause
        except BaseException as cause:
            log._record_failure(cause)
            raise
        finally:
            if cut is not None:
                ctx._cut = None
                cut.end()
        log._record_return()
        return result
