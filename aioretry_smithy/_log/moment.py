"""Read a date and time back from a line."""

from __future__ import annotations

from datetime import UTC, datetime


def moment_of(value: object) -> datetime | None:
    """Return the moment that a text is; UTC is meant where it names no zone.

    >>> str(moment_of("2026-11-26T12:00:00"))
    '2026-11-26 12:00:00+00:00'
    >>> moment_of("noon") is None
    True
    """
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def seconds_of(value: object) -> float | None:
    """Return the seconds of that moment since 1970.

    >>> seconds_of("1970-01-01T00:01:00+00:00")
    60.0
    """
    moment = moment_of(value)
    return None if moment is None else moment.timestamp()
