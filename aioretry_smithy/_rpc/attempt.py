"""Run an attempt of a function: its time limit, and the calls that are part of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._call.enclosing import EnclosingAttempt
from .._call.options import leave_attempt
from .cut import Cut, passed_by

if TYPE_CHECKING:
    from .._call.client import RpcClient
    from .._call.context import ClientRequestContext
    from .._request.rpc_request import RpcRequest


class Attempts:
    """Sends attempts through a client and the clients further in.

    It stands between a retrying client and the rest; where nothing retries, outside of
    all.

    Args:
        delegate: The client.
    """

    __slots__ = ("delegate",)

    def __init__(self, delegate: RpcClient) -> None:
        self.delegate = delegate

    async def execute(self, ctx: ClientRequestContext, request: RpcRequest) -> Any:
        """Send *request* as one attempt, which ends at its deadline."""
        if (ctx.parent or ctx)._first_attempt is not None:
            # The quick lane has made it.
            return await self.delegate.execute(ctx, request)
        deadline, cut = ctx.deadline, None
        if deadline is not None:
            cut = ctx._cut = Cut(ctx.log._call.loop, deadline)
        enclosing = EnclosingAttempt(ctx)
        entered = enclosing.enter()
        try:
            try:
                return await self.delegate.execute(ctx, request)
            except BaseException as cause:
                # The cut of a decorator; the function's own client has named the rest.
                if (passed := passed_by(ctx, cause)) is None:
                    raise
                raise passed() from cause
        except BaseException as cause:
            ctx.log._record_failure(cause)
            raise
        finally:
            ctx._cut = None
            enclosing.end()
            leave_attempt(entered)
            if cut is not None:
                cut.end()
