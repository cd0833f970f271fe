"""Make what lines said short, and show all its characters."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Final, TypeVar, cast

from .._text import printable

_T = TypeVar("_T")

_LONGEST: Final = 1000
"""Characters of a text; nobody reads more of it in a table."""


def legible(value: _T) -> _T:
    r"""Return the same with texts, those of keys too, that do nothing but be read.

    >>> legible({"a\x00": ("b\u202e", 1)})
    {'a\\x00': ('b\\u202e', 1)}
    """
    return cast("_T", _legible(value))


def _legible(value: object) -> object:
    if isinstance(value, str):
        # Cut before all else; what is shown of it may be longer.
        text = printable(value[: _LONGEST + 1])
        return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    if isinstance(value, dict):
        return {_legible(key): _legible(item) for key, item in value.items()}
    if isinstance(value, list):
        return [*map(_legible, value)]
    if isinstance(value, tuple):
        return tuple(map(_legible, value))
    if is_dataclass(value) and not isinstance(value, type):
        names = (field.name for field in fields(value))
        return type(value)(**{name: _legible(getattr(value, name)) for name in names})
    return value
