"""What can go wrong, and whether a failed attempt may be sent again.

::

    aiohttp.ClientError
    ├── UnprocessedRequestError        refused on this side, nothing was sent
    ├── FailFastError                  the circuit is open
    └── aiohttp.ServerTimeoutError (also asyncio.TimeoutError)
        └── ResponseTimeoutError       a deadline of ours passed: of the call
            └── AttemptTimeoutError    or of one attempt
"""

from __future__ import annotations

import asyncio
import errno
import sys
from enum import StrEnum
from typing import TYPE_CHECKING, TypeGuard

import aiohttp

from ._text import encodable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ._breaker.breaker import CircuitBreaker

_REDIRECTED = "_aioretry_smithy_redirected"
_QUEUED = "_aioretry_smithy_queued"


class UnprocessedRequestError(aiohttp.ClientError):
    """The request was refused on this side; the server has seen nothing of it.

    Raised by the session itself for a body that was read before and cannot be sent
    whole again. Raise it in a decorator of your own that turns a request away, so
    that retry strategies know that any method may be sent again.

    >>> is_unprocessed(UnprocessedRequestError("too many requests in flight"))
    True
    """


class FailFastError(aiohttp.ClientError):
    """The circuit breaker is open; the request was not sent.

    Args:
        circuit_breaker: The circuit breaker that refused.
        retry_in: Seconds until it may grant a trial, or None when only
            ``enter_state()`` will open the way again.
    """

    circuit_breaker: CircuitBreaker
    """The circuit breaker that refused."""

    retry_in: float | None
    """Seconds until a trial may be granted, counted from the refusal, or None."""

    def __init__(
        self, circuit_breaker: CircuitBreaker, retry_in: float | None = None
    ) -> None:
        super().__init__(circuit_breaker, retry_in)
        self.circuit_breaker = circuit_breaker
        self.retry_in = retry_in

    def __str__(self) -> str:
        when = "" if self.retry_in is None else f", next trial in {self.retry_in:.3f} s"
        return f"circuit breaker {self.circuit_breaker.name!r} is open{when}"


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


class RetrySafety(StrEnum):
    """May a request whose attempt failed be sent again?"""

    YES = "yes"
    """The server surely did not process it; any method may be sent again."""

    MAYBE = "maybe"
    """Nobody can know; only a request that is idempotent may be sent again."""

    NO = "no"
    """Pointless or harmful; it would fail in the same way."""


# Bugs of the caller. Only these very classes: an error of somebody's own that derives
# from one of them may well be worth another attempt.
_MISUSE: frozenset[type[BaseException]] = frozenset(
    {
        ArithmeticError,
        AssertionError,
        AttributeError,
        IndexError,
        KeyError,
        LookupError,
        NameError,
        NotImplementedError,
        RuntimeError,
        TypeError,
        UnboundLocalError,
        UnicodeDecodeError,
        UnicodeEncodeError,
        UnicodeError,
        ValueError,
        ZeroDivisionError,
    }
)
_BAD_URL = (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError)
_BAD_REDIRECT = (
    aiohttp.InvalidUrlRedirectClientError,
    aiohttp.NonHttpUrlRedirectClientError,
    aiohttp.TooManyRedirects,
)
_BAD_CERTIFICATE = (
    aiohttp.ClientConnectorCertificateError,
    aiohttp.ServerFingerprintMismatch,
)
# Raised when the caller aborts an upload; before 3.14 there is no such class.
_ABORTED: tuple[type[BaseException], ...] = tuple(
    filter(None, [getattr(aiohttp, "UploadAbortedError", None)])
)
_PERMANENT = (
    FailFastError,
    asyncio.CancelledError,
    *_BAD_REDIRECT,
    *_BAD_URL,
    *_BAD_CERTIFICATE,
    *_ABORTED,
)
_BEFORE_SENDING = (
    UnprocessedRequestError,
    aiohttp.ClientConnectorError,
    aiohttp.ConnectionTimeoutError,
    aiohttp.ClientHttpProxyError,
    *_BAD_URL,
    *_BAD_CERTIFICATE,
)


def retry_safety(cause: BaseException) -> RetrySafety:
    """Say whether a request that failed with *cause* may be sent again.

    ====================================================  =========
    failure                                               safety
    ====================================================  =========
    refused, unknown host, no connection in time,         ``YES``
    proxy refused, :class:`UnprocessedRequestError`
    bad certificate or fingerprint, bad URL, endless      ``NO``
    redirects, closed session, the caller's own body or
    arguments, an open circuit, cancellation
    disconnected, reset, timed out, garbage or half an    ``MAYBE``
    answer, anything unknown
    ====================================================  =========

    After a redirect the first hop was processed, so what would be ``YES`` is
    ``MAYBE``.

    Args:
        cause: What the attempt raised.

    Returns:
        The answer for the failure alone; whether the request is idempotent is for
        the caller to say.

    >>> retry_safety(TimeoutError())
    <RetrySafety.MAYBE: 'maybe'>
    >>> retry_safety(aiohttp.InvalidURL("http://"))
    <RetrySafety.NO: 'no'>
    """
    if isinstance(cause, _PERMANENT) or type(cause) in _MISUSE:
        return RetrySafety.NO
    if _is_connector_closed(cause) or _is_broken_body(cause):
        return RetrySafety.NO
    return RetrySafety.YES if is_unprocessed(cause) else RetrySafety.MAYBE


def is_unprocessed(cause: BaseException | None) -> bool:
    """Say whether the server surely saw nothing of a request that failed.

    True for a refused or timed out connection, one that the session's own pool had no
    place for in time, a name that does not resolve, a failed TLS handshake, a proxy
    that refuses, a bad URL and :class:`UnprocessedRequestError`; never after a
    redirect. An open circuit is a case of its own: ask for :class:`FailFastError`.

    Args:
        cause: What the attempt raised, or None.

    >>> is_unprocessed(None)
    False
    """
    if isinstance(cause, _BAD_REDIRECT) or cause is None:
        return False
    unseen = (
        isinstance(cause, _BEFORE_SENDING)
        or _is_connector_closed(cause)
        or was_queued(cause)
    )
    return unseen and not vars(cause).get(_REDIRECTED, False)


def is_timeout(cause: BaseException | None) -> bool:
    """Say whether an attempt failed because time ran out.

    True for every way in which aiohttp says so, from the connection to the body, and
    for a timeout that the operating system reports.

    Args:
        cause: What the attempt raised, or None.

    >>> is_timeout(aiohttp.SocketTimeoutError()), is_timeout(None)
    (True, False)
    """
    if isinstance(cause, TimeoutError):
        return True
    return isinstance(cause, OSError) and cause.errno == errno.ETIMEDOUT


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


def mark_redirected(cause: BaseException) -> None:
    """Note that an earlier hop of the failed request was answered by a redirect."""
    vars(cause)[_REDIRECTED] = True


def mark_queued(cause: BaseException) -> None:
    """Note that the failed request was cut while it waited for a place in the pool."""
    vars(cause)[_QUEUED] = True


def was_queued(cause: BaseException | None) -> bool:
    """Say whether a request timed out in the queue of the session's connection pool.

    That says nothing about the server.
    """
    return cause is not None and _QUEUED in vars(cause)


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


def _is_connector_closed(cause: BaseException) -> bool:
    return type(cause) is aiohttp.ClientConnectionError and str(cause).startswith(
        "Connector is closed"
    )


def _is_broken_body(cause: BaseException) -> bool:
    # aiohttp wraps what the caller's own body raised in this very class. A failure of
    # the transport arrives as one of its subclasses.
    return (
        type(cause) is aiohttp.ClientConnectionError
        and cause.__cause__ is not None
        and not isinstance(cause.__cause__, aiohttp.ClientError | OSError)
    )
