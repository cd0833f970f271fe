"""The innermost client of a function's chain: call it, and record what it does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
        log, cut = ctx.log, ctx._cut
        try:
            try:
                if cut is not None:
                    cut.begin(ctx)
                # Nobody knows what it reaches.
                log._sent = True
                result = await self._function(*request.args, **request.kwargs)
            except BaseException as cause:
                passed = None if cut is None else cut.passed_by(cause)
                if passed is None:
                    raise
                raise passed() from cause
        except BaseException as cause:
            log._record_failure(cause)
            raise
        log._record_return()
        return result
