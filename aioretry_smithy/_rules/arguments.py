"""Check the arguments of a rule, and show them in its repr."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeAlias

from .._errors import bad_argument, is_finite, is_plain_function

Failure: TypeAlias = type[Exception] | Callable[[Exception], bool]
"""A class of exceptions, or a plain function that says whether an exception matches."""

# Iterables too, but never meant as a collection of names or numbers.
_TEXT = (str, bytes, bytearray, memoryview)


def methods_of(value: Any) -> frozenset[str] | None:
    """Return the methods in upper case, or None for all of them."""
    if value is None:
        return None
    if isinstance(value, Iterable) and not isinstance(value, _TEXT):
        methods = tuple(value)
        # A method is one word.
        if methods and all(isinstance(m, str) and m.split() == [m] for m in methods):
            return frozenset(method.upper() for method in methods)
    raise bad_argument("methods", value, 'a collection such as ["GET"], or None')


def integers_of(name: str, value: Any, low: int, high: int) -> frozenset[int]:
    """Return a collection of integers, each from *low* to *high*."""
    if isinstance(value, Iterable) and not isinstance(value, _TEXT):
        numbers = tuple(value)
        if all(_is_integer(number) and low <= number <= high for number in numbers):
            return frozenset(map(int, numbers))
    raise bad_argument(name, value, f"a collection of integers in [{low}, {high}]")


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def exceptions_of(value: Any) -> tuple[Failure, ...]:
    """Return classes of exceptions and functions of one: one of them or several."""
    entries = (value,) if callable(value) else value
    if isinstance(entries, Iterable) and not isinstance(entries, _TEXT):
        entries = tuple(entries)
        if all(map(_is_failure, entries)):
            return entries
    expected = "classes derived from Exception or plain functions of the cause"
    raise bad_argument("exceptions", value, expected)


def _is_failure(entry: object) -> bool:
    if isinstance(entry, type):
        return issubclass(entry, Exception)
    return is_plain_function(entry)


def check_seconds(name: str, value: object) -> None:
    """Refuse anything but a positive, finite number of seconds or None."""
    if value is not None and (not is_finite(value) or value <= 0):
        raise bad_argument(name, value, "seconds, > 0 and finite, or None")


def check_function(name: str, value: object, argument: str) -> None:
    """Refuse anything but a plain function or None."""
    if value is not None and not is_plain_function(value):
        raise bad_argument(name, value, f"a plain function of {argument}, or None")


def checked_answer(name: str, answer: object) -> bool:
    """Return the answer of a user's function as a bool; refuse an awaitable."""
    if isinstance(answer, Awaitable):
        if inspect.iscoroutine(answer):
            answer.close()
        raise bad_argument(name, answer, "True or False, without awaiting it")
    return bool(answer)


def is_given(value: object, default: object = None) -> bool:
    """Say whether a setting differs from its default."""
    if isinstance(value, frozenset | tuple):
        return bool(value)
    return value is not None and value is not False and value != default


def setting_repr(value: object) -> str:
    """Return a setting as it would be written in code."""
    if isinstance(value, frozenset):
        return repr(sorted(value))
    if isinstance(value, tuple):
        return f"[{', '.join(map(_name_of, value))}]"
    return repr(value)


def _name_of(entry: object) -> str:
    if not isinstance(entry, type):
        return repr(entry)
    module = "" if entry.__module__ == "builtins" else f"{entry.__module__}."
    return f"{module}{entry.__qualname__}"
