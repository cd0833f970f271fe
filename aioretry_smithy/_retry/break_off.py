"""Record what ends the attempts of a call: a decision, or what breaks into them."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from .._call.outcome import RetryStopReason
from .._call.recorder import record_failure, record_unwanted
from .._errors import ResponseTimeoutError, raised_from
from .._failures.blame import where_passed
from .._failures.failure import stands_for
from .given_up import reason_after

if TYPE_CHECKING:
    from .._call.call import Call
    from .._call.record import Record


_CONTENT: Final = frozenset({None, RetryStopReason.NO_RETRY})
"""Reasons to stop with an outcome after which nobody wanted another attempt."""


def record_stop(
    call: Call,
    record: Record,
    reason: RetryStopReason | None,
    refusal: Exception | None,
) -> None:
    """Record that a call stops with the outcome of an attempt.

    Args:
        call: The call.
        record: That of the attempt.
        reason: Why there is no other one; None after a success.
        refusal: The error with which a Smithy strategy refused another attempt.
    """
    if reason not in _CONTENT:
        record_unwanted(record)
    # Unless a decorator has answered without waiting for this.
    if not call.is_settled:
        if reason is not None or call.stop_reason is not None:
            call.stop_reason = reason_after(call, record, reason)
        if refusal is not None or call.retry_error is not None:
            call.retry_error = refusal
        call.outcome = record.outcome


def record_break(
    call: Call,
    error: BaseException,
    cause: BaseException | None,
    refusal: Exception | None,
    *,
    is_first: bool,
) -> None:
    """Record that a call ended because *error* broke into it.

    Args:
        call: The call.
        error: The error, or what cancelled it; an error then says what went before.
        cause: The failure of the attempt before, if that has failed.
        refusal: The error with which a Smithy strategy refused another attempt.
        is_first: Whether no attempt had begun.
    """
    raised = isinstance(error, Exception)
    # Otherwise a concurrent pass has ended the call.
    if not call.is_settled and (call.outcome.ended is None or is_first):
        record_failure(call, call, error)
        call.retry_error = refusal
        reason = RetryStopReason.ERROR if raised else RetryStopReason.CANCELLED
        call.stop_reason = reason
    if raised:
        keep_as_context(error, cause)


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
    stands_for(error, cut)
    return error


def keep_as_context(error: BaseException, cause: BaseException | None) -> None:
    """Let an error say what went before, if it does not."""
    if all(link is not error for link in raised_from(cause)):
        # An exception of the caller's own may refuse to be written on.
        with suppress(Exception):
            if error.__context__ is None:
                error.__context__ = cause
