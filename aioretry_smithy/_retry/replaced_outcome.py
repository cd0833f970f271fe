"""Keep the outcome of an attempt, in case that the next one cannot send the body."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .._bodies.replayable_payload import SpentBodyError
from .._bodies.request_body import may_be_refused
from .._call.outcome import NOTHING
from .._failures.failure import peel

if TYPE_CHECKING:
    from .._call.call import Call
    from .._call.outcome import Result
    from .._call.record import Record


class ReplacedOutcome(NamedTuple):
    """The outcome of an attempt that another one is to replace."""

    record: Record
    result: Result
    cause: Exception | None

    @classmethod
    def of(
        cls, call: Call, record: Record, result: Result, cause: Exception | None
    ) -> ReplacedOutcome | None:
        """Return an outcome that a call may yet end with; None of any other."""
        if call.resources is None or (result is NOTHING and cause is None):
            return None
        return cls(record, result, cause) if may_be_refused(call) else None


def is_refused_body(cause: Exception | None) -> bool:
    """Say whether an attempt failed because its body was not what was sent before."""
    return cause is not None and isinstance(peel(cause), SpentBodyError)
