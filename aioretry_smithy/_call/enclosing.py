"""Begin a call, as part of the attempt of a function that it is made in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._log.capture import collecting
from .options import AttemptOptions

if TYPE_CHECKING:
    from collections.abc import Collection

    from .._log.capture import CaptureBlock
    from .._log.request_log import RequestLog
    from .context import ClientRequestContext
    from .options import Options


class EnclosingAttempt(AttemptOptions):
    """An attempt of a function, for the calls that are made in it while it lasts.

    Tasks and connections that begin in an attempt keep its context variables, some for
    long. So this refers to the attempt only until it is over.

    Args:
        ctx: The attempt; or the call, where nothing retries.
    """

    __slots__ = ("_captures", "_ctx")

    def __init__(self, ctx: ClientRequestContext) -> None:
        self._ctx: ClientRequestContext | None = ctx
        self._captures = collecting()

    def end(self) -> None:
        """Note that the attempt is over: no further call is part of it."""
        self._ctx, self._captures = None, ()

    def take(self, ctx: ClientRequestContext) -> tuple[CaptureBlock, ...]:
        """Let a call that begins be part of the attempt, and end with it."""
        attempt = self._ctx
        if attempt is not None:
            join(ctx, attempt.log, attempt.deadline)
        return self._captures


def join(ctx: ClientRequestContext, log: RequestLog, deadline: float | None) -> None:
    """Let a call be part of an attempt: of its *log*, and of its time."""
    log._add_call(ctx.log)
    # The loop of another thread has a clock of its own.
    if deadline is not None and log._call.loop is ctx.log._call.loop:
        # A function may go on after its time is up: a call then has none.
        ctx._cap = max(deadline, ctx.log.started)
        ctx._move_deadline(ctx.deadline)


def begin_call(ctx: ClientRequestContext, options: Options | None) -> None:
    """Give a call that begins what the code around it asks for.

    Args:
        ctx: The context of the call.
        options: The options of the blocks around it.
    """
    outside: Collection[CaptureBlock] = ()
    if options is not None:
        ctx.options = options
        if options.attributes:
            ctx.attributes.update(options.attributes)
        if options.enclosing is not None:
            outside = options.enclosing.take(ctx)
    for block in collecting():
        if block not in outside:
            block.append(ctx.log)
