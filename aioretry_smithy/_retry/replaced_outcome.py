"""Keep the outcome of an attempt, in case that the next one cannot send the body."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .._bodies.request_body import may_be_refused
from .._bodies.sent_content import SpentBodyError
from .._call.hooks import NOTHING
from .._call.stop_reason import RetryStopReason
from .._failures.groups import peel

if TYPE_CHECKING:
    from .._call.kinds import Result
    from .._call.record import Record
    from .._context.loop import Ending


class ReplacedOutcome(NamedTuple):
    """The outcome of an attempt that another one is to replace."""

    record: Record
    result: Result
    cause: BaseException | None

    @classmethod
    def of(cls, ending: Ending, record: Record) -> ReplacedOutcome | None:
        """Return an outcome that a call may yet end with; None of any other."""
        call, result, cause = ending.call, ending.result, ending.cause
        if call.resources is None or (result is NOTHING and cause is None):
            return None
        return cls(record, result, cause) if may_be_refused(call) else None


def outcome_of(
    ending: Ending,
    record: Record,
    replaced: ReplacedOutcome | None,
    reason: RetryStopReason | None,
) -> tuple[Record, RetryStopReason | None]:
    """Return the record of the attempt that a call ends with, and why it ends.

    Where that could not send the body, it ends as it would have before.
    """
    if (
        replaced is None
        or ending.cause is None
        or not isinstance(peel(ending.cause), SpentBodyError)
    ):
        return record, reason
    record, ending.result, ending.cause = replaced
    return record, RetryStopReason.BODY_NOT_REPLAYABLE
