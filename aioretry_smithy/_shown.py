"""Describe objects of the caller's in the messages of errors, and show no secret."""

from __future__ import annotations

import re
from datetime import date, time, timedelta
from enum import Enum
from functools import partial
from numbers import Number
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Collection

_OURS: Final = __name__.partition(".")[0]
_TEXTS: Final = {bytearray, bytes, str}
_PLAIN: Final = (
    *(BuiltinFunctionType, FunctionType, type),
    *(Enum, Number, date, time, timedelta, type(None)),
)
_COLLECTIONS: Final = {frozenset, list, set, tuple}

_LONGEST: Final = 500
_DEEPEST: Final = 3

# A URL, a user and a password before a host, and a name that looks secret with what
# may be its value.
_SUSPICIOUS: Final = re.compile(
    r"//|:[^\s:@]+@|(?:auth|cookie|cred|key|pass|pwd|secret|session|sid|sig|token)"
    r"[\w-]*['\"]?\s*[=:,]",
    re.IGNORECASE,
)


def shown(value: object) -> str:
    """Describe an object: as Python does, or by its class alone.

    By its class, unless it is sure to hold no secret: a response shows its cookies, a
    URL its password, and a class of the user's own may show anything. Cut where long.

    >>> shown((1, "two")), shown("http://me:hunter2@example.com/")
    ("(1, 'two')", '<str object>')
    """
    try:
        text = _description(value)
    except Exception:
        # Python refuses to write whole numbers of more than 4300 digits, for one.
        text = None
    if text is None:
        return f"<{type(value).__name__} object>"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _description(value: object) -> str | None:
    """Return at least the beginning of what Python says; None if it may be secret."""
    # What we describe ourselves has no secret in it.
    module = getattr(type(value).__repr__, "__module__", "")
    if module.partition(".")[0] == _OURS:
        return repr(value)
    some: Any = value
    if type(value) in _TEXTS:
        some = some[:_LONGEST]
    if not _is_plain(some, _DEEPEST):
        return None
    # What tells of a secret stands before it, or is the "@" right behind it, so what is
    # cut need not be searched.
    text = repr(some)[: _LONGEST + 1]
    return None if _SUSPICIOUS.search(text) else text


def _is_plain(value: object, depth: int) -> bool:
    """Say whether Python describes an object by nothing that is not seen here."""
    if type(value) in _TEXTS or isinstance(value, _PLAIN):
        return True
    inside = _inside(value)
    return (
        inside is not None
        and len(inside) <= _LONGEST
        and (depth > 0 or not inside)
        and all(_is_plain(each, depth - 1) for each in inside)
    )


def _inside(value: Any) -> Collection[object] | None:
    """Return the objects by which Python describes another one; None if unknown."""
    kind: Any = type(value)
    if kind in _COLLECTIONS:
        return value  # type: ignore[no-any-return]
    if kind is dict:
        return [*value, *value.values()]
    if kind is partial:
        return value.func, value.args, value.keywords
    if kind is MethodType:
        return (value.__self__,)
    if kind.__repr__ is BaseException.__repr__:
        return value.args  # type: ignore[no-any-return]
    return () if kind.__repr__ is object.__repr__ else None
