"""Suggest the right name for a mistyped argument."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import warnings
from typing import TYPE_CHECKING, Any, Final, TypeGuard, TypeVar

from ._errors import bad_argument

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from types import FunctionType, MethodType

_T = TypeVar("_T")

_PACKAGE = __name__.partition(".")[0]
_ALSO = ", which counts the first attempt too"
_LONG: Final = 100

NAMES_ELSEWHERE: Final = {
    "attempts": "max_total_attempts",
    "max_attempts": "max_total_attempts",
    "max_retries": "max_total_attempts",
    "max_tries": "max_total_attempts",
    "retries": "max_total_attempts",
    "total": "max_total_attempts",
    "tries": "max_total_attempts",
    "max_time": "stop_after_delay",
    "per_try_timeout": "attempt_timeout",
    "timeout": "attempt_timeout",
    "backoff": "strategy",
    "rule": "strategy",
    "budget": "limiter",
    "before_sleep": "listeners",
    "on_backoff": "listeners",
    "on_retry": "listeners",
}
"""Names of settings in other libraries, and in this library."""


def nearest(name: str, known: Collection[str]) -> str:
    """Return which of the known names was perhaps meant, to follow what is expected."""
    meant = NAMES_ELSEWHERE.get(name)
    if meant in known:
        return f", perhaps {meant!r}{_ALSO if 'retries' in name else ''}"
    # Who makes no mistake need not load it.
    from difflib import get_close_matches  # noqa: PLC0415

    close = get_close_matches(name, sorted(known), 1)
    return f", perhaps {close[0]!r}" if close else ""


def refuses_unknown_names(kind: type[_T]) -> type[_T]:
    """Let a class refuse unknown arguments, and suggest the nearest name."""
    changed: Any = kind
    initialize = changed.__init__
    known = frozenset(inspect.signature(kind).parameters)

    @functools.wraps(initialize)
    def checked(self: _T, *args: object, **named: object) -> None:
        for name in named:
            if name not in known:
                expected = f"an argument of {kind.__name__}{nearest(name, known)}"
                # Without the value, as everywhere where the name is unknown.
                raise bad_argument("argument", name, expected)
        initialize(self, *args, **named)

    changed.__init__ = checked
    return kind


def call_it(value: object, *kinds: type) -> str:
    """Return what to add to what is expected, where a value had to be called.

    Args:
        value: What was given; perhaps a class, or one of its factories.
        kinds: The classes of which an object is expected.
    """
    if isinstance(value, type):
        if not issubclass(value, kinds):
            return ""
        if inspect.isabstract(value):
            return "; call one of its factories or subclasses"
        name = value.__name__
    elif _is_factory(value, kinds):
        name = ".".join(value.__qualname__.split(".")[-2:])
    else:
        return ""
    return f"; call it: {name}({_arguments(value)})"


def _is_factory(
    value: object, kinds: tuple[type, ...]
) -> TypeGuard[FunctionType | MethodType]:
    owner = getattr(value, "__self__", None)
    if isinstance(owner, type):
        return issubclass(owner, kinds)
    name = getattr(value, "__name__", None)
    return isinstance(name, str) and any(
        value is getattr(kind, name, None) for kind in kinds
    )


def _arguments(function: Callable[..., object]) -> str:
    parameters = inspect.signature(function).parameters.values()
    optional = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    needed = (
        each.default is each.empty and each.kind not in optional for each in parameters
    )
    return "..." if any(needed) else ""


def check_unit(name: str, seconds: float) -> None:
    """Warn of a time that was perhaps meant in milliseconds: a whole number above 100.

    A float says that seconds are meant: 200.0.
    """
    if isinstance(seconds, int) and seconds > _LONG:
        warn_caller(
            f"{name}: {seconds} s; units are seconds. Write {seconds / 1000:g} if you"
            f" mean milliseconds, and {seconds}.0 if you mean seconds"
        )


def warn_caller(message: str) -> None:
    """Warn at the caller's line outside of this library.

    Python's own filter keeps this to once for each line and text.
    """
    frame, level = inspect.currentframe(), 1
    while frame is not None and _is_inside(frame.f_globals):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, RuntimeWarning, stacklevel=level)


def _is_inside(variables: Mapping[str, object]) -> bool:
    module = str(variables.get("__name__"))
    # dataclasses.replace() stands between the user and one of our classes.
    return is_ours(module) or module == dataclasses.__name__


def is_ours(module: str) -> bool:
    """Say whether a module is one of this library, by its name."""
    return module.partition(".")[0] == _PACKAGE
