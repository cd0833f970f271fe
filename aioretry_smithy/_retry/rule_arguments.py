"""The arguments of a retry rule: read, refused, shown."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Iterable
from typing import Any

from .._errors import bad_argument


def methods_of(value: Any) -> frozenset[str] | None:
    """Return the methods in upper case, or None for all of them."""
    if value is None:
        return None
    if isinstance(value, Iterable) and not isinstance(value, str):
        methods = tuple(value)
        # A method is one word.
        if methods and all(isinstance(m, str) and m.split() == [m] for m in methods):
            return frozenset(method.upper() for method in methods)
    raise bad_argument("methods", value, 'a collection such as ["GET"], or None')


def integers_of(name: str, value: Any, low: int, high: int) -> frozenset[int]:
    """Return integers of a range."""
    if isinstance(value, Iterable):
        numbers = tuple(value)
        if all(_is_integer(number) and low <= number <= high for number in numbers):
            return frozenset(map(int, numbers))
    raise bad_argument(name, value, f"a collection of integers in [{low}, {high}]")


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def exceptions_of(value: Any) -> tuple[type[Exception], ...]:
    """Return classes of exceptions, as ``except`` takes them: one or several."""
    classes = (value,) if isinstance(value, type) else value
    if isinstance(classes, Iterable):
        classes = tuple(classes)
        if all(
            isinstance(kind, type) and issubclass(kind, Exception) for kind in classes
        ):
            return classes
    raise bad_argument("exceptions", value, "classes derived from Exception")


def check_function(name: str, value: object, argument: str) -> None:
    """Refuse what is no function, and what would have to be awaited."""
    is_plain = callable(value) and not inspect.iscoroutinefunction(value)
    if value is not None and not is_plain:
        raise bad_argument(name, value, f"a plain function of {argument}, or None")


def answer_of(name: str, answer: object) -> bool:
    """Return what a function answered, which is no promise of an answer."""
    if isinstance(answer, Awaitable):
        if inspect.iscoroutine(answer):
            answer.close()
        raise bad_argument(name, answer, "True or False, without awaiting it")
    return bool(answer)


def is_given(value: object) -> bool:
    """Say whether a setting differs from what it is unless given."""
    if isinstance(value, frozenset | tuple):
        return bool(value)
    return value is not None and value is not False


def shown(value: object) -> str:
    """Return a setting as it would be written."""
    if isinstance(value, frozenset):
        return repr(sorted(value))
    if isinstance(value, tuple):
        return f"[{', '.join(map(_name_of, value))}]"
    return repr(value)


def _name_of(kind: type) -> str:
    module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    return f"{module}{kind.__qualname__}"
