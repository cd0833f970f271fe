"""Write the lines of each call once the body of its response has ended."""

from __future__ import annotations

import sys
from contextvars import copy_context
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._call.call import Call
    from .._call.record import Record

    Write: TypeAlias = Callable[[Call, Record], None]
    """Writes the lines of a call, or of an attempt of it."""


def write_waiting(call: Call, record: Record) -> None:
    """Write the pending lines of an answer that is about to be replaced.

    A decorator around may send again while the body of the first is open.
    """
    waiting = [each for each in call.waiters if isinstance(each, _Lines)]
    for lines in waiting:
        lines.stop_waiting(record)
    if waiting:
        call.wake()


def write_after_body(call: Call, record: Record, write: Write) -> None:
    """Write the lines of an answer, now or when its body has ended."""
    outcome = record.outcome
    if outcome.ended is not None and outcome.body_ended is None:
        call.wait_with(_Lines(call, record, write))
    else:
        write(call, record)


class _Lines:
    """The lines of a call that are written when its body has ended.

    They wait with the call, whose response nobody keeps for that. aiohttp ends a body
    in the context of whatever opened the connection; so this has the context of the
    call, which the filters of a logger may read.
    """

    __slots__ = ("_call", "_context", "_is_due", "_record", "_write")

    def __init__(self, call: Call, record: Record, write: Write) -> None:
        self._call = call
        self._record = record
        self._context = copy_context()
        self._write = write
        self._is_due = False

    def stop_waiting(self, record: Record) -> None:
        """Let them be written next, body or not, if they are about this record."""
        self._is_due = self._is_due or self._record is record

    def __call__(self) -> None:
        """Write them if the body has ended; otherwise wait on."""
        if sys.is_finalizing():
            # With the interpreter, what handlers need goes too.
            return
        if self._record.outcome.body_ended is None and not self._is_due:
            self._call.wait_with(self)
        else:
            self._context.run(self._write, self._call, self._record)
