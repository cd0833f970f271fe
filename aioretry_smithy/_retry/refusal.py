"""Tell attempts that something on this side refused, such as an open circuit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from .._bodies.replayable_payload import SpentBodyError
from .._errors import RefusedRequestError, UnprocessedRequestError
from .._failures.safety import layers, peel
from .._log.attachment import attached_to
from .._log.stop_reason import RetryStopReason

if TYPE_CHECKING:
    from .._log.record import LogRecord

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
    attempt: LogRecord, reason: RetryStopReason | None
) -> RetryStopReason | None:
    """Return why a call stopped after an attempt, which may have been refused."""
    if reason in _GIVES_WAY and _was_refused(attempt):
        return RetryStopReason.REFUSED
    return reason


def _was_refused(attempt: LogRecord) -> bool:
    cause = attempt.response_cause
    if attempt._was_refused and (cause is None or is_refusal(cause)):
        # By an open circuit; a fallback may have answered.
        return True
    if not is_refusal(cause) or _came_from_inside(attempt, cause):
        return False
    # A function that has run raised it itself.
    return attempt.request._brings_response or not attempt._sent


def _came_from_inside(attempt: LogRecord, cause: Any) -> bool:
    """Say whether the call that was refused is one made inside the attempt."""
    logs = (log for log in map(attached_to, layers(cause)) if log is not None)
    # An exception may have ended an earlier call, and be raised again.
    return any(
        log.root is not attempt.root and log.started >= attempt.started for log in logs
    )
