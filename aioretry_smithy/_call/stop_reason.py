"""Name the reasons why a retrying client stops."""

from __future__ import annotations

from enum import StrEnum


class RetryStopReason(StrEnum):
    """The reason why a retrying client made no further attempt."""

    NO_RETRY = "no_retry"
    """The strategy wanted no retry of the outcome."""

    MAX_TOTAL_ATTEMPTS = "max_total_attempts"
    """The attempts allowed for one call were used up."""

    BACKOFF_EXHAUSTED = "backoff_exhausted"
    """The backoff had no further delay."""

    STOP_AFTER_DELAY = "stop_after_delay"
    """The next attempt would have begun too long after the first one."""

    DEADLINE = "deadline"
    """The deadline passed, or the next attempt would have begun after it."""

    RETRY_AFTER_TOO_LONG = "retry_after_too_long"
    """The server asked for a longer wait than the settings or the deadline allow."""

    LIMITER = "limiter"
    """The limiter refused the retry."""

    BODY_NOT_REPLAYABLE = "body_not_replayable"
    """The body was read by an earlier attempt and cannot be sent whole again."""

    REFUSED = "refused"
    """A circuit breaker, a limit or a group on this side refused the last attempt."""

    CANCELLED = "cancelled"
    """The caller cancelled the call."""

    ERROR = "error"
    """The strategy, or other code of the caller, raised."""
