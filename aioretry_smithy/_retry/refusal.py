"""Tell attempts that something on this side refused, such as an open circuit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from .._bodies.replayable_payload import SpentBodyError
from .._call.attachment import attached_to
from .._call.recorder import cause_of
from .._call.stop_reason import RetryStopReason
from .._errors import RefusedRequestError, UnprocessedRequestError
from .._failures.safety import layers, peel

if TYPE_CHECKING:
    from .._call.call import Call
    from .._call.record import Record

_GIVES_WAY: Final = frozenset(
    {
        RetryStopReason.BACKOFF_EXHAUSTED,
        RetryStopReason.MAX_TOTAL_ATTEMPTS,
        RetryStopReason.NO_RETRY,
        RetryStopReason.RETRY_AFTER_TOO_LONG,
    }
)
"""Reasons that say less than that the last attempt was refused."""


def is_refusal(cause: BaseException | None) -> bool:
    """Say whether *cause* is that something on this side turned a request away.

    A body that was read before is no such refusal.
    """
    if cause is None:
        return False
    cause = peel(cause)
    is_refused = isinstance(cause, RefusedRequestError | UnprocessedRequestError)
    return is_refused and not isinstance(cause, SpentBodyError)


def reason_after(
    call: Call, record: Record, reason: RetryStopReason | None
) -> RetryStopReason | None:
    """Return why a call stopped after an attempt, which may have been refused."""
    if reason in _GIVES_WAY and _was_refused(call, record):
        return RetryStopReason.REFUSED
    return reason


def _was_refused(call: Call, record: Record) -> bool:
    cause = cause_of(record)
    if record.was_refused and (cause is None or is_refusal(cause)):
        # By an open circuit; a fallback may have answered.
        return True
    if not is_refusal(cause) or _came_from_inside(call, record, cause):
        return False
    # A function that has run raised it itself.
    return call.brings_response or not record.was_sent


def _came_from_inside(call: Call, record: Record, cause: Any) -> bool:
    """Say whether the call that was refused is one made inside the attempt."""
    calls = (each for each in map(attached_to, layers(cause)) if each is not None)
    # An exception may have ended an earlier call, and be raised again.
    return any(each is not call and each.started >= record.started for each in calls)
