"""Read the values of a line: whatever is not as it should be is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .._log.moment import seconds_of

if TYPE_CHECKING:
    from collections.abc import Mapping

_MOST: Final = 1e9
"""No time, and no count, is as large as this."""


def number(values: Mapping[str, object], key: str) -> float | None:
    """Return a number >= 0 and finite, or None."""
    value = values.get(key)
    if type(value) is float or type(value) is int:
        return value if 0 <= value < _MOST else None
    return None


def text(values: Mapping[str, object], key: str) -> str | None:
    """Return a text, or None; an empty one is none."""
    value = values.get(key)
    return (value or None) if isinstance(value, str) else None


def dictionaries(values: Mapping[str, object], key: str) -> list[dict[str, object]]:
    """Return the dictionaries in a list."""
    value = values.get(key)
    if not value or not isinstance(value, list):
        return []
    return [each for each in value if isinstance(each, dict)]


def moment(values: Mapping[str, object]) -> float | None:
    """Return when it started, in seconds since 1970, or None."""
    return seconds_of(values.get("request_started_at"))
