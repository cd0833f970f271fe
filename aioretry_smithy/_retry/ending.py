"""Record why the attempts of a call end, and make the error of its deadline."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from .._bodies.replayable_payload import SpentBodyError
from .._bodies.request_body import may_differ
from .._call.outcome import NOTHING, Result, RetryStopReason
from .._call.recorder import attached_to, cause_of, record_failure, record_unwanted
from .._errors import (
    LimitedRequestError,
    RefusedRequestError,
    ResponseTimeoutError,
    UnprocessedRequestError,
    raised_from,
)
from .._failures.failure import (
    RetrySafety,
    copy_marks,
    failure_of,
    layers,
    peel,
    where_passed,
)
from .._log.request_log import call_of

if TYPE_CHECKING:
    from .._call.call import Call
    from .._call.record import CallsInside, Record
    from .._context.context import ClientRequestContext


_CONTENT: Final = frozenset({None, RetryStopReason.NO_RETRY})
"""Stop reasons of outcomes that no strategy wanted to retry."""

_GIVES_WAY: Final = frozenset(
    {
        RetryStopReason.BACKOFF_EXHAUSTED,
        RetryStopReason.MAX_TOTAL_ATTEMPTS,
        RetryStopReason.NO_RETRY,
        RetryStopReason.RETRY_AFTER_TOO_LONG,
        RetryStopReason.STOP_AFTER_DELAY,
    }
)
"""Reasons that say less than that the last attempt was refused."""


def record_stop(
    call: Call,
    record: Record,
    reason: RetryStopReason | None,
    retry_error: Exception | None,
) -> None:
    """Record that a call stops with the outcome of an attempt.

    Args:
        call: The call.
        record: That of the attempt.
        reason: Why there is no other one; None after a success.
        retry_error: The error with which a Smithy strategy refused another attempt.
    """
    if reason not in _CONTENT:
        record_unwanted(record)
    # Unless a decorator has answered without waiting for this.
    if not call.is_final:
        if reason is not None or call.stop_reason is not None:
            call.stop_reason = _reason_after(call, record, reason)
        if retry_error is not None or call.retry_error is not None:
            call.retry_error = retry_error
        call.outcome = record.outcome


def _reason_after(
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
    ours = LimitedRequestError | RefusedRequestError
    if cause is None or not isinstance(peel(cause), ours):
        # A decorator of the user's may turn requests away too.
        return False
    if _came_from_inside(call, record, cause):
        return False
    # A function that has run raised it itself.
    return call.brings_response or not record.was_sent


def _came_from_inside(call: Call, record: Record, cause: Any) -> bool:
    """Say whether the call that was refused is one made inside the attempt."""
    calls = (each for each in map(attached_to, layers(cause)) if each is not None)
    # An exception may have ended an earlier call, and be raised again.
    return any(each is not call and each.started >= record.started for each in calls)


def is_refusal(cause: BaseException | None) -> bool:
    """Say whether *cause* is a refusal on this side (open circuit, full limit).

    A body that was read before is no such refusal.
    """
    peeled = None if cause is None else peel(cause)
    is_refused = isinstance(peeled, RefusedRequestError | UnprocessedRequestError)
    return is_refused and not isinstance(peeled, SpentBodyError)


def record_break(
    call: Call,
    error: BaseException,
    cause: BaseException | None,
    retry_error: Exception | None,
    *,
    is_first: bool,
) -> None:
    """Record that a call ended because *error* broke into it.

    Args:
        call: The call.
        error: The error, or what cancelled it; an error then says what went before.
        cause: The failure of the attempt before, if that has failed.
        retry_error: The error with which a Smithy strategy refused another attempt.
        is_first: Whether no attempt had begun.
    """
    raised = isinstance(error, Exception)
    # Otherwise a concurrent pass has ended the call.
    if not call.is_final and (call.outcome.ended is None or is_first):
        record_failure(call, error)
        call.retry_error = retry_error
        reason = RetryStopReason.ERROR if raised else RetryStopReason.CANCELLED
        call.stop_reason = reason
    if raised:
        keep_as_context(error, cause)


def keep_as_context(error: BaseException, cause: BaseException | None) -> None:
    """Set the ``__context__`` of an error, if not set."""
    if all(link is not error for link in raised_from(cause)):
        # An exception of the caller's own may refuse to be written on.
        with suppress(Exception):
            if error.__context__ is None:
                error.__context__ = cause


def deadline_passed(
    cut: Exception | None, earlier: Exception | None, attempts: int
) -> ResponseTimeoutError:
    """Make the error for the deadline of a call that retries.

    Args:
        cut: The failure of the attempt that it cut, if there is one.
        earlier: The failure of the attempt before.
        attempts: How many attempts there were.
    """
    passed = f"the deadline passed {where_passed(cut)}".rstrip()
    error = ResponseTimeoutError(f"{passed}, attempts: {attempts}")
    error.__cause__ = cut if earlier is None else earlier
    copy_marks(error, cut)
    return error


class ReplacedOutcome(NamedTuple):
    """The outcome of an attempt that a retry is to replace."""

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
        return cls(record, result, cause) if may_differ(call) else None


def is_spent_body(cause: Exception | None) -> bool:
    """Say whether an attempt failed because its body was not what was sent before."""
    return cause is not None and isinstance(peel(cause), SpentBodyError)


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
