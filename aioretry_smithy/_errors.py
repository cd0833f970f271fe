"""Define the exceptions of this library, and how their texts show and advise.

::

    aiohttp.ClientError
    ├── UnprocessedRequestError        refused on this side, nothing was sent
    │   ├── EndpointGroupError         no endpoint: none there, none in time
    │   ├── ConcurrencyLimitError      no place in flight in time
    │   └── RateLimitError             no turn at a rate in time
    ├── FailFastError                  the circuit is open
    └── aiohttp.ServerTimeoutError (also asyncio.TimeoutError)
        └── ResponseTimeoutError       a deadline of ours passed: of the call
            └── AttemptTimeoutError    or of one attempt
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
import math
import re
import sys
import warnings
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import date, time, timedelta
from enum import Enum
from functools import partial
from itertools import count
from numbers import Number
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, ClassVar, Final, Self, TypeAlias, TypeGuard, TypeVar

import aiohttp

from ._text.printable import encodable

_PACKAGE: Final = __name__.partition(".")[0]
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
    if is_ours(getattr(type(value).__repr__, "__module__", "")):
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
    """Say whether the repr of an object runs built-in code only."""
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
    """Return the objects inside the repr of an object; None if unknown."""
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


_F = TypeVar("_F", bound="Callable[..., object]")
_Parts: TypeAlias = tuple[tuple[object, ...], dict[str, object]]

_numbers: defaultdict[str, count[int]] = defaultdict(count)


class UnprocessedRequestError(aiohttp.ClientError):
    """The client refused to send the request; the server has seen nothing of it.

    The session itself raises it for a body that was read before and cannot be sent
    whole again. Raise it in a decorator of your own that turns a request away: retry
    strategies then know that any method may be sent again.

    >>> is_unprocessed(UnprocessedRequestError("too many requests in flight"))
    True
    """


class Snapshot:
    """A snapshot of an unpicklable object's text and attributes, for pickled errors."""

    def __init__(self, text: str, values: dict[str, object]) -> None:
        self._text = text
        vars(self).update(values)

    @classmethod
    def of(cls, thing: object, names: Iterable[str]) -> Snapshot:
        """Take a snapshot of an object now, with the attributes of these names."""
        values = {}
        for name in names:
            # What a limit is may be a function of the user's.
            with suppress(Exception):
                values[name] = getattr(thing, name)
        return cls(repr(thing), values)

    def __repr__(self) -> str:
        return self._text


class _PickledWithSnapshots:
    """An exception that pickles snapshots of unpicklable objects.

    Pickled it has a snapshot of each; a copy has the objects themselves.
    """

    _snapshots: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """The attributes with such objects, and the names of what is kept of each."""

    def __reduce__(self) -> tuple[object, ...]:
        taken: dict[int, Snapshot] = {}
        for attribute, names in self._snapshots.items():
            thing = getattr(self, attribute)
            taken[id(thing)] = Snapshot.of(thing, names)
        args, values = self._parts()
        return (
            type(self),
            tuple(taken.get(id(each), each) for each in args),
            {name: taken.get(id(each), each) for name, each in values.items()},
        )

    def __copy__(self) -> Self:
        return self._rebuilt(lambda each: each)

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self._rebuilt(lambda each: copy.deepcopy(each, memo))

    def _rebuilt(self, copied: Callable[[_Parts], _Parts]) -> Self:
        args, values = copied(self._parts())
        made = type(self)(*args)
        vars(made).update(values)
        return made

    def _parts(self) -> _Parts:
        """Return the arguments and attributes that an exception is rebuilt from."""
        _, args, *state = tuple(super().__reduce__())
        return args, dict(*state)


class LimitedRequestError(_PickledWithSnapshots, UnprocessedRequestError):
    """A limit or an endpoint group of this library did not let the request out.

    The base of their errors, for modules that know neither of them.
    """


class RefusedRequestError(_PickledWithSnapshots, aiohttp.ClientError):
    """A decorator refused the request for a reason that outlasts a retry.

    The base of :class:`FailFastError`, for modules that do not know circuit breakers.
    """


class ResponseTimeoutError(aiohttp.ServerTimeoutError):
    """The deadline of the call passed; in the subclass, the timeout of one attempt.

    It passed while an attempt was under way, or while the caller read the body. The
    ``__cause__`` is the last exception of an earlier attempt, or the failure of the
    attempt that was cut. The error is a :class:`TimeoutError` and an
    :class:`aiohttp.ClientError`, so code written for aiohttp goes on working.

    >>> issubclass(ResponseTimeoutError, TimeoutError)
    True
    """


class AttemptTimeoutError(ResponseTimeoutError):
    """An attempt ran into its own timeout; the call may have had time left.

    It says which attempt had how many seconds: "attempt 2 had 3.000 s". Its
    ``__cause__`` is the timeout that aiohttp raised. A strategy may retry it; a
    :class:`ResponseTimeoutError` of any other class is the end of the call.

    >>> is_timeout(AttemptTimeoutError("attempt 2 had 3.000 s"))
    True
    """


def raised_from(source: object, *, largest_group: float = math.inf) -> Iterator[object]:
    """Yield an exception, its causes and contexts, and members of groups, each once.

    Those of a group that is larger than *largest_group* are left out.
    """
    seen: set[int] = set()
    pending = [source]
    while pending:
        link = pending.pop()
        if link is None or id(link) in seen:
            continue
        seen.add(id(link))
        yield link
        if (
            isinstance(link, BaseExceptionGroup)
            and len(link.exceptions) <= largest_group
        ):
            pending += link.exceptions
        if isinstance(link, BaseException):
            pending += [link.__context__, link.__cause__]


def bad_argument(name: str, value: object, expected: str) -> ValueError:
    """Make the error for a bad argument, in the form that this library always uses.

    What may hold a secret is shown by its class.

    >>> bad_argument("max_delay", 1, ">= min_delay, 2")
    ValueError('max_delay: 1 (expected: >= min_delay, 2)')
    """
    return ValueError(encodable(f"{name}: {shown(value)} (expected: {expected})"))


def bad_secret(name: str, value: object, expected: str) -> ValueError:
    """Make the error for a bad argument that is perhaps a secret in a wrong place.

    >>> bad_secret("fetch", "hunter2", "a function")
    ValueError('fetch: <str object> (expected: a function)')
    """
    given = "None" if value is None else f"<{type(value).__name__} object>"
    return ValueError(f"{name}: {given} (expected: {expected})")


def unqualified(function: _F) -> _F:
    """Let Python's own errors about the arguments of a method name no class.

    They would name the one that it is written in, where public classes inherit it from
    one that is not.
    """
    function.__qualname__ = function.__name__
    return function


def is_finite(value: object) -> TypeGuard[float]:
    """Say whether *value* is a finite number; a bool is not one.

    >>> [is_finite(value) for value in (0, 1.5, float("nan"), True, "1")]
    [True, True, False, False, False]
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    # Arithmetic with an int beyond the largest float overflows.
    return abs(value) <= sys.float_info.max


def checked_name(name: object, default: str | None = None) -> str:
    """Return *name*, or *default* with the next number in place of None."""
    if name is None and default is not None:
        return f"{default}-{next(_numbers[default])}"
    if isinstance(name, str) and name:
        return name
    raise bad_argument("name", name, "a str that is not empty")


def positive_integer(name: str, text: str) -> int:
    """Read a setting that is a number of at most nine digits."""
    if text.isascii() and text.isdigit() and len(text) < 10 and int(text) > 0:
        return int(text)
    raise bad_argument(name, text, "a positive integer")


def is_plain_function(value: object) -> bool:
    """Say whether *value* can be called, and is not a coroutine function.

    >>> async def later():
    ...     pass
    >>> [is_plain_function(value) for value in (len, later, 1)]
    [True, False, False]
    """
    # Also partials of coroutine functions, and objects with an async __call__.
    return callable(value) and not (
        inspect.iscoroutinefunction(value)
        or inspect.iscoroutinefunction(type(value).__call__)
    )


def missing_extra(extra: str, cause: ModuleNotFoundError) -> ModuleNotFoundError:
    """Make the error for a public module whose extra is not installed.

    >>> print(missing_extra("limits", ModuleNotFoundError(name="limits")))
    limits is missing: pip install "aioretry-smithy[limits]"
    """
    package = str(cause.name).partition(".")[0]
    message = f'{package} is missing: pip install "aioretry-smithy[{extra}]"'
    return ModuleNotFoundError(message, name=cause.name)


_T = TypeVar("_T")

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
    """Return the hint in an error that a class or factory was given uncalled."""
    if isinstance(value, type):
        if not issubclass(value, kinds) or issubclass(value, Enum):
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
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # of a built-in class
        return "..."
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
    """Say whether a module belongs to this library, by name."""
    return module.partition(".")[0] == _PACKAGE
