"""Hear of retries before they are made."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from .._context.context import ClientRequestContext


class RetryListener:
    """Hears of each retry before it is waited for; override the method.

    What it raises is logged and changes nothing. It has no say in the retry, but may
    prepare it: what it puts into ``ctx.attributes`` is there for decorators inside the
    retrying client. Give it to ``listeners=`` of a retrying client.

    It does not hear of what is no retry of that client: hedges, requests that are sent
    again on another connection, resumed downloads and refreshed tokens.

    >>> class Diary(RetryListener):
    ...     def on_retry(self, ctx, cause, delay):
    ...         print(f"attempt {ctx.attempt} failed, {delay} s to the next one")
    >>> decorator = RetryingClient.new_decorator(
    ...     RetryStrategy.failsafe(), listeners=[Diary()]
    ... )
    """

    def on_retry(
        self, ctx: ClientRequestContext, cause: Exception | None, delay: float
    ) -> Awaitable[None] | None:
        """Called when a retry is decided and paid for, before the wait; may be async.

        The response of the attempt is released by now. The wait goes on meanwhile: what
        this takes is part of it, and longer if this takes longer. If the deadline of
        the call passes, the retry is not made.

        Args:
            ctx: The attempt that failed; ``ctx.log`` has the status and the headers of
                its response.
            cause: The exception of the attempt, or None when there was a response.
            delay: Seconds from the end of the attempt to the next one.
        """
        return None
