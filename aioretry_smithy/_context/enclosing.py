"""Begin a call, as part of the attempt of a function that it is made in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._log.request_log import collecting, log_of
from .context import attributes_of
from .options import AttemptOptions

if TYPE_CHECKING:
    from collections.abc import Collection

    from .._call.call import Call
    from .._log.request_log import CaptureBlock
    from .context import ClientRequestContext
    from .options import Options


class EnclosingAttempt(AttemptOptions):
    """An attempt of a function, for the calls that are made in it while it lasts.

    Tasks and connections that begin in an attempt keep its context variables, some for
    long. So this refers to the attempt only until it is over.

    Args:
        ctx: The attempt; or the call, where nothing retries.
    """

    __slots__ = ("_attempt", "_captures")

    def __init__(self, ctx: ClientRequestContext) -> None:
        self._attempt: ClientRequestContext | None = ctx
        self._captures = collecting()

    def end(self) -> None:
        """Note that the attempt is over: no further call is part of it."""
        self._attempt, self._captures = None, ()

    def take(self, call: Call) -> tuple[CaptureBlock, ...]:
        """Let a call that begins be part of the attempt, and end with it."""
        if self._attempt is not None:
            outer, record = self._attempt.call, self._attempt.record
            outer.surround(record, call)
            deadline = outer.deadline_of(record)
            # The loop of another thread has a clock of its own.
            if deadline is not None and outer.loop is call.loop:
                # A function may go on after its time is up: a call then has none.
                call.cap = max(deadline, call.started)
                call.move_deadline(call.deadline)
        return self._captures


def begin_call(call: Call, options: Options | None) -> None:
    """Give a call that begins what the code around it asks for.

    Args:
        call: The call.
        options: The options of the blocks around it.
    """
    outside: Collection[CaptureBlock] = ()
    if options is not None:
        call.options = options
        if options.attributes:
            attributes_of(call).update(options.attributes)
        if options.enclosing is not None:
            outside = options.enclosing.take(call)
    for block in collecting():
        if block not in outside:
            block.append(log_of(call, call))
