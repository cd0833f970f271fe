"""Tell failures that were retried already, by a call further in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from .._failures.safety import RetrySafety, layers, peel, retry_safety
from .._log.attachment import log_of
from .._log.stop_reason import RetryStopReason

if TYPE_CHECKING:
    from .._call.context import ClientRequestContext
    from .._log.record import LogRecord

_GIVEN_UP: Final = frozenset(
    {
        RetryStopReason.BACKOFF_EXHAUSTED,
        RetryStopReason.DEADLINE,
        RetryStopReason.LIMITER,
        RetryStopReason.MAX_TOTAL_ATTEMPTS,
        RetryStopReason.RETRY_AFTER_TOO_LONG,
    }
)


def call_inside(attempt: LogRecord, cause: BaseException) -> LogRecord | None:
    """Return the log of the call made inside an attempt that *cause* came out of."""
    if not attempt.calls:
        return None
    # A group has the log of the call that it ended, its members that of another.
    logs = (log for log in map(log_of, layers(cause)) if log is not None)
    # An exception may have ended another call before, and be raised again.
    return next(filter(attempt._has_call, logs), None)


def is_given_up(attempt: LogRecord, cause: BaseException) -> bool:
    """Say whether the calls made inside an attempt have tried *cause* often enough.

    A group has been, when each of its members has: its requests failed side by side.
    """
    pending = [cause]
    while pending:
        failure = pending.pop()
        inside = call_inside(attempt, failure)
        if inside is None:
            group = peel(failure)
            if not isinstance(group, BaseExceptionGroup):
                return False
            pending += group.exceptions
        elif not _gave_up(inside):
            return False
    return True


def safety_in(ctx: ClientRequestContext, cause: BaseException) -> RetrySafety:
    """Return the :func:`retry_safety` of a failure; that of one given up is ``NO``.

    Retries would multiply, if each client on the way out made its own of them.
    """
    if is_given_up(ctx.log, cause):
        return RetrySafety.NO
    return retry_safety(cause)


def _gave_up(log: LogRecord) -> bool:
    if log.stop_reason is RetryStopReason.REFUSED:
        return _has_insisted(log)
    return log.stop_reason in _GIVEN_UP or log._call.gave_up_inside


def _has_insisted(log: Any) -> bool:
    """Say whether a call was more than refused at once, in its only attempt."""
    waits = (each.delay for each in (log, *log.children))
    return log._count_attempts() > 1 or log._call.has_queued or any(waits)
