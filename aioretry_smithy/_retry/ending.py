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
from .._failures.failure import copy_marks, layers, peel, where_passed

if TYPE_CHECKING:
    from .._call.call import Call
    from .._call.record import Record


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
