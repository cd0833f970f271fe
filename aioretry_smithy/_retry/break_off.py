"""Record what breaks into a call between its attempts, or ends its time."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from .._call.recorder import record_failure
from .._call.stop_reason import RetryStopReason
from .._errors import ResponseTimeoutError, raised_from
from .._failures.pool_queue import where_passed
from .._failures.safety import stands_for

if TYPE_CHECKING:
    from .._call.call import Call


def record_break(call: Call, error: BaseException, refusal: Exception | None) -> None:
    """Record that a call ended because *error* broke into it.

    Args:
        call: The call.
        error: The error, or what cancelled it.
        refusal: The error with which a Smithy strategy refused another attempt.
    """
    record_failure(call, call, error)
    raised = isinstance(error, Exception)
    call.retry_error = refusal
    call.stop_reason = RetryStopReason.ERROR if raised else RetryStopReason.CANCELLED


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
    error.__cause__ = earlier or cut
    stands_for(error, cut)
    return error


def keep_as_context(error: BaseException, cause: BaseException | None) -> None:
    """Let an error say what went before, if it does not."""
    if all(link is not error for link in raised_from(cause)):
        # An exception of the caller's own may refuse to be written on.
        with suppress(Exception):
            error.__context__ = error.__context__ or cause
