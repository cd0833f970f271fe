"""Tell failures that were retried already, by a call further in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .._failures.safety import RetrySafety, layers, retry_safety
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


def gave_up(log: LogRecord | None) -> bool:
    """Say whether a call made inside has tried its failure often enough."""
    return log is not None and (
        log.stop_reason in _GIVEN_UP or log._call.gave_up_inside
    )


def safety_in(ctx: ClientRequestContext, cause: BaseException) -> RetrySafety:
    """Return the :func:`retry_safety` of a failure; that of one given up is ``NO``.

    Retries would multiply, if each client on the way out made its own of them.
    """
    if gave_up(call_inside(ctx.log, cause)):
        return RetrySafety.NO
    return retry_safety(cause)
