"""Judge a failed attempt by its exception: what it was, and whether to send again."""

from __future__ import annotations

import asyncio
import errno
from enum import StrEnum
from typing import Final

import aiohttp

from .._errors import RefusedRequestError, UnprocessedRequestError, bad_argument
from .groups import peel
from .marks import (
    connection_failed,
    had_no_connection,
    is_of_no_server,
    raised_by_caller,
    reached_server,
    sibling_timed_out,
    was_queued,
)
from .raised_answers import status_in
from .retry_info import RetryInfo

_BROKEN = (ConnectionResetError, ConnectionAbortedError, BrokenPipeError)


_ERRNOS = {errno.ECONNRESET, errno.ECONNABORTED, errno.EPIPE, errno.ESHUTDOWN}


_ERROR_SEM_TIMEOUT: Final = 121
"""How Windows calls it when a peer does not answer in time; it has no ``errno``."""


SERVER_ERRORS: Final = frozenset(range(500, 600))
"""5xx; HTTP has no classes above, though servers send some."""


_MAY_PASS: Final = SERVER_ERRORS | {408, 429}


def ran_out(cause: BaseException | None) -> bool:
    """Say whether a limit of time ended a request, or another for the same answer.

    Also one in the queue of a connection pool or of a limit.
    """
    return is_timeout(cause) or was_queued(cause) or sibling_timed_out(cause)


class RetrySafety(StrEnum):
    """Whether a request whose attempt failed may be sent again."""

    YES = "yes"
    """The server surely did not process it; any method may be sent again."""

    MAYBE = "maybe"
    """Unknown; only a request that is idempotent may be sent again."""

    NO = "no"
    """Pointless or harmful; it would fail in the same way."""


# Bugs of the caller. Only these very classes: a user's error class that derives from
# one of them may well be worth another attempt.
_MISUSE: set[type[BaseException]] = {
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
    RefusedRequestError,
    asyncio.CancelledError,
    *_BAD_REDIRECT,
    *_BAD_URL,
    *_BAD_CERTIFICATE,
    *_ABORTED,
)


# aiohttp has no classes for these. The second: the server redirects, and the body was
# read for the first hop.
_CLOSED = aiohttp.ClientConnectionError, "Connector is closed"


_SPENT = aiohttp.ClientPayloadError, "Cannot follow redirect with a consumed"


_OF_PROXIES = (aiohttp.ClientProxyConnectionError, aiohttp.ClientHttpProxyError)

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

    =========  ======================================================
    safety     failure
    =========  ======================================================
    ``YES``    refused, unknown host, no connection in time,
               a proxy that is not there or too busy,
               :class:`UnprocessedRequestError`
    ``NO``     bad certificate or fingerprint, bad URL, endless
               redirects, a redirect of a body that cannot be sent
               again, closed session, any exception from the caller's
               own body or arguments, a bug, an open circuit,
               cancellation, a status that is final
    ``MAYBE``  disconnected, reset, timed out, an answer that is not
               HTTP or incomplete, anything unknown
    =========  ======================================================

    A bug is a plain :class:`ValueError`, :class:`TypeError`, :class:`KeyError`,
    :class:`RuntimeError`, :class:`AssertionError` or the like. Classes of libraries and
    your own that derive from them, such as :class:`json.JSONDecodeError`, are
    ``MAYBE``. One of ``aiohttp``, ``asyncio`` or ``uvloop`` while they connect is a
    failed connection.

    A :class:`aiohttp.ClientResponseError` that was raised for an answer is judged by
    its status, also that of a proxy in place of a tunnel: a 5xx, 408 or 429 may pass,
    any other status is final.

    After a redirect the first hop was processed, so ``YES`` becomes ``MAYBE``, as it
    does if a middleware or a decorator already sent the request within the attempt.
    Smithy's retry information on the exception comes first: ``is_retry_safe`` means
    ``YES`` or ``NO``; if it is None, a ``fault`` of the client that neither throttles
    nor timed out is ``NO``. A group of one exception is judged as that exception.

    Args:
        cause: The exception of the attempt.

    Returns:
        The answer for the failure alone; it does not consider whether the request is
        idempotent.

    Raises:
        ValueError: *cause* is no exception, such as the None of a response.

    >>> retry_safety(TimeoutError())
    <RetrySafety.MAYBE: 'maybe'>
    >>> retry_safety(aiohttp.InvalidURL("http://"))
    <RetrySafety.NO: 'no'>
    """
    if not isinstance(cause, BaseException):
        raise bad_argument("cause", cause, "an exception")
    cause = peel(cause)
    is_safe = RetryInfo.of(cause).is_retry_safe
    if is_safe is None or raised_by_caller(cause):
        return safety_by_kind(cause)
    return RetrySafety.YES if is_safe else RetrySafety.NO


def safety_by_kind(cause: BaseException) -> RetrySafety:
    """Judge a failure as :func:`retry_safety` does, but ignore its ``is_retry_safe``.

    For limiters and circuit breakers: a server that must not be asked again may be down
    all the same.
    """
    cause = peel(cause)
    info = RetryInfo.of(cause)
    may_pass = info.is_throttling_error or info.is_timeout_error
    if raised_by_caller(cause) or (info.fault == "client" and not may_pass):
        return RetrySafety.NO
    is_misuse = type(cause) in _MISUSE and not connection_failed(cause)
    if is_misuse or isinstance(cause, _PERMANENT):
        return RetrySafety.NO
    status = status_in(cause)
    if status is not None and not may_pass_by(status):
        return RetrySafety.NO
    if _says(cause, *_CLOSED) or _says(cause, *_SPENT) or _is_broken_body(cause):
        return RetrySafety.NO
    return RetrySafety.YES if is_unprocessed(cause) else RetrySafety.MAYBE


def is_of_server(cause: BaseException) -> bool:
    """Say whether a failure speaks of the server, or of the way to it.

    Not one in a queue of this side, nor a mistake of the caller's, of a hook or of a
    middleware.
    """
    if was_queued(cause) or is_of_no_server(cause):
        return False
    return safety_by_kind(cause) is not RetrySafety.NO


def may_pass_by(status: int) -> bool:
    """Say whether a request that got this status may get another one later."""
    return status in _MAY_PASS


def forbids_retry(cause: BaseException | None) -> bool:
    """Say whether the ``is_retry_safe`` of a failure is False.

    A rule that names its class may retry failures that are ``NO`` for other reasons,
    but not this one.
    """
    return cause is not None and RetryInfo.of(peel(cause)).is_retry_safe is False


def is_unprocessed(cause: BaseException | None) -> bool:
    """Say whether the server surely saw nothing of a request that failed.

    True for a refused or timed out connection, a timeout in the queue of the session's
    own pool, a name that does not resolve, a failed TLS handshake, a proxy
    that refuses, a bad URL and :class:`UnprocessedRequestError`; never after a
    redirect, nor if an earlier send within the attempt reached the server. An open
    circuit does not count: test for :class:`FailFastError`.

    Args:
        cause: The exception of the attempt, or None.

    >>> is_unprocessed(None)
    False
    """
    if cause is None:
        return False
    cause = peel(cause)
    if isinstance(cause, _BAD_REDIRECT) or reached_server(cause):
        return False
    return (
        isinstance(cause, _BEFORE_SENDING)
        or _says(cause, *_CLOSED)
        or had_no_connection(cause)
        or was_queued(cause)
    )


def is_timeout(cause: BaseException | None) -> bool:
    """Say whether an attempt failed because time ran out.

    True for all of aiohttp's timeouts, from the connection to the body, and
    for a timeout that the operating system reports.

    Args:
        cause: The exception of the attempt, or None.

    >>> is_timeout(aiohttp.SocketTimeoutError()), is_timeout(None)
    (True, False)
    """
    if cause is None:
        return False
    cause = peel(cause)
    if isinstance(cause, TimeoutError):
        return True
    # What aiohttp raises for a connection that fails has it inside.
    if isinstance(cause, aiohttp.ClientConnectorError):
        cause = getattr(cause, "os_error", cause)
    return isinstance(cause, OSError) and (
        cause.errno == errno.ETIMEDOUT
        or getattr(cause, "winerror", None) == _ERROR_SEM_TIMEOUT
    )


def is_broken_connection(cause: BaseException) -> bool:
    """Say whether the server, or what is before it, cut a connection that was there.

    True for a disconnect before a byte of the answer and for a reset; not for a refused
    connection, a timeout, or a body that was cut. Whether a reset came before or after
    the first byte, the exception does not tell.

    Args:
        cause: The exception of the attempt.

    >>> is_broken_connection(aiohttp.ServerDisconnectedError())
    True
    """
    cause = peel(cause)
    if isinstance(cause, aiohttp.ClientConnectorError) or raised_by_caller(cause):
        return False
    if isinstance(cause, aiohttp.ServerDisconnectedError):
        # Otherwise it is the part of the head that came; a user's class may have none.
        return isinstance(getattr(cause, "message", ""), str)
    return isinstance(cause, _BROKEN) or (
        isinstance(cause, aiohttp.ClientOSError)
        and (cause.errno in _ERRNOS or isinstance(cause.__cause__, _BROKEN))
    )


def is_of_proxy(cause: BaseException) -> bool:
    """Say whether a proxy, not the server, is what failed."""
    return isinstance(peel(cause), _OF_PROXIES)


def was_refused(cause: BaseException | None) -> bool:
    """Say whether an open circuit refused a request and nothing was sent."""
    return cause is not None and isinstance(peel(cause), RefusedRequestError)


def _says(cause: BaseException, kind: type[BaseException], words: str) -> bool:
    return type(cause) is kind and str(cause).startswith(words)


def _is_broken_body(cause: BaseException) -> bool:
    # aiohttp wraps an exception of the caller's own body in this very class, and a
    # failure of the transport in one of its subclasses.
    return (
        type(cause) is aiohttp.ClientConnectionError
        and cause.__cause__ is not None
        and not isinstance(cause.__cause__, aiohttp.ClientError | OSError)
        and not connection_failed(cause)
    )
