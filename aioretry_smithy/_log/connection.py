"""Say how long a request waited for a connection, where that is worth a word."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .._failures.pool_queue import was_in_pool

if TYPE_CHECKING:
    from .._call.connection_timings import ConnectionTimings
    from .facts import LogFacts

_SHORTEST: Final = 0.001
"""Seconds of such a wait that are worth a word."""

_LEAST: Final = 0.1
"""Which part of the time of the request they must be, too."""


def long_wait(log: LogFacts) -> ConnectionTimings | None:
    """Return what a request waited for, if that was long, and a tenth of its time."""
    timings = log.connection
    if timings is None or timings.waited < _SHORTEST:
        return None
    duration = log.duration
    is_long = duration is None or timings.waited >= duration * _LEAST
    return timings if is_long else None


def describe_connection(log: LogFacts) -> str:
    """Say which part of its time a request waited; nothing where that was short.

    Nor where its outcome says so: it was cut in the queue.
    """
    timings = long_wait(log)
    if timings is None or was_in_pool(log.response_cause):
        return ""
    words = in_words(timings)
    return f"{words} so far" if log.duration is None else f"of which {words}"


def in_words(timings: ConnectionTimings) -> str:
    """Name the longest wait: that in the queue, on this side, or that for the rest."""
    queued = timings.queued or 0.0
    if queued >= timings.waited / 2:
        return f"{queued:.3f} s in the pool's queue"
    return f"{timings.waited:.3f} s for a connection"


def to_values(timings: ConnectionTimings | None) -> dict[str, object] | None:
    """Return plain JSON values."""
    if timings is None:
        return None
    names = "queued", "dns", "connect", "reused"
    return {name: getattr(timings, name) for name in names}
