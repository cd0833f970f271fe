"""Find failures that calls inside an attempt have given up after their own retries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .._call.outcome import RetryStopReason
from .._failures.failure import RetrySafety, failure_of, layers, peel
from .._log.request_log import call_of

if TYPE_CHECKING:
    from .._call.call import Call
    from .._call.record import CallsInside, Record
    from .._context.context import ClientRequestContext


_GIVEN_UP: Final = frozenset(
    {
        RetryStopReason.BACKOFF_EXHAUSTED,
        RetryStopReason.DEADLINE,
        RetryStopReason.LIMITER,
        RetryStopReason.MAX_TOTAL_ATTEMPTS,
        RetryStopReason.RETRY_AFTER_TOO_LONG,
        RetryStopReason.STOP_AFTER_DELAY,
    }
)


def call_inside(record: Record, cause: BaseException) -> Call | None:
    """Return the call made inside an attempt that *cause* came out of."""
    inside = record.calls_inside
    if inside is None:
        return None
    # A group has the call that it ended, its members that of another.
    calls = (call for call in map(call_of, layers(cause)) if call is not None)
    # An exception may have ended another call before, and be raised again.
    return next((call for call in calls if _is_among(call, inside, record)), None)


def _is_among(call: Call, inside: CallsInside, record: Record) -> bool:
    """Say whether a call was made inside; for one that was not kept by its time."""
    is_kept = any(each is call for each in inside.kept)
    return is_kept or (inside.dropped > 0 and call.started >= record.started)


def is_given_up(record: Record, cause: BaseException) -> bool:
    """Say whether the calls made inside an attempt have tried *cause* often enough.

    A group has been, when each of its members has: its requests failed side by side.
    """
    pending = [cause]
    # Groups may be nested deeper than Python lets functions be.
    while pending:
        failure = pending.pop()
        inside = call_inside(record, failure)
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
    if is_given_up(ctx.record, cause):
        return RetrySafety.NO
    return failure_of(cause).safety


def status_judged_in(ctx: ClientRequestContext, cause: BaseException) -> int | None:
    """Return the status by which a failure is judged, as an answer with it would be.

    None where it has none, was given up, or says itself that it is not to be retried.
    """
    failure = failure_of(cause)
    status = failure.status
    if status is None or failure.forbids_retry or is_given_up(ctx.record, cause):
        return None
    return status


def _gave_up(call: Call) -> bool:
    if call.stop_reason is RetryStopReason.REFUSED:
        return _has_insisted(call)
    return call.stop_reason in _GIVEN_UP or call.gave_up_inside


def _has_insisted(call: Call) -> bool:
    """Say whether a call did more than a single attempt refused at once."""
    waits = (each.delay for each in (call, *call.sent))
    return call.attempts_made > 1 or call.has_queued or any(waits)
