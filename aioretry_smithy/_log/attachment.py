"""Attach the log of a call to its outcome, and find it there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._errors import raised_from
from .._failures.frames import sources_of
from .._failures.kept_cause import LOG_KEY

if TYPE_CHECKING:
    from .record import LogRecord


def attach(log: LogRecord, source: object) -> None:
    """Let :meth:`RequestLog.of` find *log* from *source*."""
    if isinstance(source, BaseException):
        # An exception of the user's own may refuse to be written on.
        vars(source)[LOG_KEY] = log
    else:
        # Quicker, since Python then needs no dictionary for the attributes.
        setattr(source, LOG_KEY, log)


def find_log(source: object) -> LogRecord | None:
    """Return the log attached to *source*, or to what it was raised from."""
    found = (log_of(link) for link in raised_from(source))
    return next((log for log in found if log is not None), None)


def log_of(source: object) -> LogRecord | None:
    """Return the log attached to *source* itself, or to the response that raised it."""
    log: LogRecord | None = attached_to(source)
    if log is None and isinstance(source, BaseException):
        return _log_of_body(source)
    return log


def attached_to(source: object) -> Any:
    """Return the log attached to *source*, or None."""
    log: Any = getattr(source, "__dict__", {}).get(LOG_KEY)
    if isinstance(log, tuple):
        # That of a call of the short lane is made when it is asked for.
        make, *facts = log
        log = make(source, *facts)
        setattr(source, LOG_KEY, log)
    return log


def _log_of_body(error: BaseException) -> LogRecord | None:
    """Find the log of the response that raised *error*.

    Most of what a response raises does not pass through this library: errors of its
    status or its JSON. Their frames have the response, or its stream.
    """
    for source, has_failed in sources_of(error):
        log: LogRecord | None = attached_to(source)
        if log is not None:
            if has_failed:
                # Before it was read, so that no wait for it has met the failure.
                source.fail(error)
            return log
    return None
