"""Define the exceptions of this library, and the one form of argument errors.

::

    aiohttp.ClientError
    ├── UnprocessedRequestError        refused on this side, nothing was sent
    ├── FailFastError                  the circuit is open
    └── aiohttp.ServerTimeoutError (also asyncio.TimeoutError)
        └── ResponseTimeoutError       a deadline of ours passed: of the call
            └── AttemptTimeoutError    or of one attempt
"""

from __future__ import annotations

import inspect
import sys
from typing import TYPE_CHECKING, TypeGuard

import aiohttp

from ._text import encodable

if TYPE_CHECKING:
    from collections.abc import Iterator


class UnprocessedRequestError(aiohttp.ClientError):
    """The request was refused on this side; the server has seen nothing of it.

    Raised by the session itself for a body that was read before and cannot be sent
    whole again. Raise it in a decorator of your own that turns a request away, so
    that retry strategies know that any method may be sent again.

    >>> is_unprocessed(UnprocessedRequestError("too many requests in flight"))
    True
    """


class RefusedRequestError(aiohttp.ClientError):
    """A decorator refused the request for a reason that outlasts a retry.

    The base of :class:`FailFastError`, for what knows no circuit breakers.
    """


class ResponseTimeoutError(aiohttp.ServerTimeoutError):
    """The deadline of the whole call passed, or in the subclass that of one attempt.

    While an attempt was under way, or while the caller read the body. Its ``__cause__``
    is the last exception of an earlier attempt, or the failure of the attempt that was
    cut. It is a :class:`TimeoutError` and an :class:`aiohttp.ClientError`, so code
    written for aiohttp goes on working.

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
    """Yield an exception and all that it was raised from or groups, each once."""
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
    """Make the error for an argument, in the one form that this library uses.

    >>> bad_argument("max_delay", 1, ">= min_delay, 2")
    ValueError('max_delay: 1 (expected: >= min_delay, 2)')
    """
    return ValueError(encodable(f"{name}: {value!r} (expected: {expected})"))


def is_finite(value: object) -> TypeGuard[float]:
    """Say whether *value* is a number, and neither infinite nor NaN nor a truth value.

    >>> [is_finite(value) for value in (0, 1.5, float("nan"), True, "1")]
    [True, True, False, False, False]
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    # An int beyond the largest float is no use either: arithmetic with it overflows.
    return abs(value) <= sys.float_info.max


def is_plain_function(value: object) -> bool:
    """Say whether *value* can be called, and what it returns need not be awaited.

    >>> async def later():
    ...     pass
    >>> [is_plain_function(value) for value in (len, later, 1)]
    [True, False, False]
    """
    # One that stands for another, as of functools, or an object with such a method.
    return callable(value) and not (
        inspect.iscoroutinefunction(value)
        or inspect.iscoroutinefunction(type(value).__call__)
    )
