"""Define the exceptions of this library, and the one form of argument errors.

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
import inspect
import sys
from collections import defaultdict
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, ClassVar, Self, TypeAlias, TypeGuard, TypeVar

import aiohttp

from ._shown import shown
from ._text import encodable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

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
    """The values of an object that stays in its process, as a pickled error has them.

    It has the object's text and some attributes, except those that raised.

    Args:
        text: How the object describes itself.
        values: The attributes.
    """

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
    """An exception that holds objects of its process, which cannot be pickled.

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


def raised_from(source: object) -> Iterator[object]:
    """Yield an exception, its causes and contexts, and members of groups, each once."""
    seen: set[int] = set()
    pending = [source]
    while pending:
        link = pending.pop()
        if link is None or id(link) in seen:
            continue
        seen.add(id(link))
        yield link
        if isinstance(link, BaseExceptionGroup):
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
    """Make the same error where the value is perhaps a secret in a wrong place.

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


def check_int(name: str, value: object, low: int) -> None:
    """Refuse anything but an int that is *low* or more; a bool is none."""
    if type(value) is not int or value < low:
        raise bad_argument(name, value, f"an int >= {low}")


def check_positive(name: str, value: object) -> None:
    """Refuse anything but a finite number above 0."""
    if not is_finite(value) or value <= 0:
        raise bad_argument(name, value, "finite and > 0")


def check_not_negative(name: str, value: object) -> None:
    """Refuse anything but a finite number that is 0 or more."""
    if not is_finite(value) or value < 0:
        raise bad_argument(name, value, "finite and >= 0")


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
