"""Write the values of a log as a line of JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from .sampling import share_of_lines

if TYPE_CHECKING:
    from collections.abc import Mapping

_VERSION: Final = 1
"""The version of the keys, which grows when a key changes its meaning."""

_ALWAYS: Final = frozenset({"is_success", "sent"})
"""Keys that are written even if their value is false."""

_compact: Final = json.JSONEncoder(separators=(",", ":")).encode


def json_line(kind: str, values: Mapping[str, object], *, omit_empty: bool) -> str:
    """Return the line for the values of a log; *kind* is its ``"type"``."""
    head = {"type": kind, "v": _VERSION, **share_of_lines()}
    if omit_empty:
        return _compact(head | _without_empty(values))
    return json.dumps(head | dict(values))


def _without_empty(values: Mapping[str, object]) -> dict[str, object]:
    """Leave out what is empty, here and in the logs inside."""
    return {
        # Of lists there are none but those of logs.
        key: [*map(_without_empty, value)] if isinstance(value, list) else value
        for key, value in values.items()
        if key in _ALWAYS or not _is_empty(value)
    }


def _is_empty(value: object) -> bool:
    # A number is none: 0 bytes are not the same as nobody knows how many.
    return not value and type(value) not in {int, float}
