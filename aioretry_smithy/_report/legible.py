"""Make what lines said short, and show all its characters."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Final, TypeVar

from .._text import printable

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_D = TypeVar("_D", bound="DataclassInstance")

_LONGEST: Final = 1000
"""Characters of a text; nobody reads more of it in a table."""


def legible(value: _D) -> _D:
    r"""Return the same with texts, those of keys too, that do nothing but be read.

    >>> from dataclasses import make_dataclass
    >>> legible(make_dataclass("Counts", ["by"])({"a\x00": ("b\u202e", 1)}))
    Counts(by={'a\\x00': ('b\\u202e', 1)})
    """
    names = (field.name for field in fields(value))
    return replace(value, **{name: _legible(getattr(value, name)) for name in names})


def _legible(value: object) -> object:
    if isinstance(value, str):
        return legible_text(value)
    if isinstance(value, dict):
        return {_legible(key): _legible(item) for key, item in value.items()}
    if isinstance(value, list):
        return [*map(_legible, value)]
    if isinstance(value, tuple):
        return tuple(map(_legible, value))
    if is_dataclass(value) and not isinstance(value, type):
        return legible(value)
    return value


def legible_text(text: str) -> str:
    """Return a text that does nothing but be read, and that is not too long for it."""
    # Cut before all else; what is shown of it may be longer.
    shown = printable(text[: _LONGEST + 1])
    return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}…"
