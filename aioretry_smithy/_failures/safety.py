"""Classify an exception by its class, error number, text and cause."""

from __future__ import annotations

import asyncio
import errno
from enum import StrEnum
from typing import Final, NamedTuple

import aiohttp

from .._errors import RefusedRequestError, UnprocessedRequestError

SERVER_ERRORS: Final = frozenset(range(500, 600))
"""5xx; HTTP has no classes above, though servers send some."""

_MAY_PASS: Final = SERVER_ERRORS | {408, 429}


class RetrySafety(StrEnum):
    """Whether a request whose attempt failed may be sent again."""

    YES = "yes"
    """The server surely did not process it; any method may be sent again."""

    MAYBE = "maybe"
    """Unknown; only a request that is idempotent may be sent again."""

    NO = "no"
    """Pointless or harmful; it would fail in the same way."""


def may_pass_by(status: int) -> bool:
    """Say whether a status is transient, so that a retry may help."""
    return status in _MAY_PASS


_BROKEN = (ConnectionResetError, ConnectionAbortedError, BrokenPipeError)

_ERRNOS = {errno.ECONNRESET, errno.ECONNABORTED, errno.EPIPE, errno.ESHUTDOWN}

_ERROR_SEM_TIMEOUT: Final = 121
"""How Windows calls it when a peer does not answer in time; it has no ``errno``."""

# Bugs of the caller. Only these very classes: a user's error class that derives from
# one of them may well be worth another attempt.
_MISUSE: Final[frozenset[type[BaseException]]] = frozenset(
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


class Kind(NamedTuple):
    """The classification of an exception by its class, errno, text and cause."""

    is_permanent: bool
    """Whether it would fail in the same way again."""

    is_bug: bool
    """Whether it is a mistake in code, or what a body raised."""

    is_bad_redirect: bool
    """Whether a server has answered with a redirect that cannot be followed."""

    is_before_sending: bool
    """Whether it is raised only before anything is sent."""

    is_of_proxy: bool
    """Whether a proxy, not the server, is what failed."""

    is_refusal: bool
    """Whether an open circuit or the like refused the request; nothing was sent."""

    is_timeout: bool
    """Whether time ran out, for aiohttp or for the operating system."""

    is_broken_connection: bool
    """Whether the server, or a proxy before it, cut an open connection.

    By a disconnect before a byte of the answer, or by a reset; not a refused
    connection, a timeout, or a body that was cut. Whether a reset came before or after
    the first byte, the exception does not tell.
    """

    @classmethod
    def of(cls, cause: BaseException) -> Kind:
        """Look at an exception.

        >>> Kind.of(aiohttp.ServerDisconnectedError()).is_broken_connection
        True
        """
        is_closed = _says(cause, *_CLOSED)
        is_final = isinstance(cause, _PERMANENT) or _says(cause, *_SPENT)
        return cls(
            is_permanent=is_final or is_closed,
            is_bug=type(cause) in _MISUSE or _is_broken_body(cause),
            is_bad_redirect=isinstance(cause, _BAD_REDIRECT),
            is_before_sending=isinstance(cause, _BEFORE_SENDING) or is_closed,
            is_of_proxy=isinstance(cause, _OF_PROXIES),
            is_refusal=isinstance(cause, RefusedRequestError),
            is_timeout=_is_timeout(cause),
            is_broken_connection=_is_broken_connection(cause),
        )


def _is_timeout(cause: BaseException) -> bool:
    if isinstance(cause, TimeoutError):
        return True
    # What aiohttp raises for a connection that fails has it inside.
    if isinstance(cause, aiohttp.ClientConnectorError):
        cause = getattr(cause, "os_error", cause)
    return isinstance(cause, OSError) and (
        cause.errno == errno.ETIMEDOUT
        or getattr(cause, "winerror", None) == _ERROR_SEM_TIMEOUT
    )


def _is_broken_connection(cause: BaseException) -> bool:
    if isinstance(cause, aiohttp.ClientConnectorError):
        return False
    if isinstance(cause, aiohttp.ServerDisconnectedError):
        # Otherwise it is the part of the head that came; a user's class may have none.
        return isinstance(getattr(cause, "message", ""), str)
    return isinstance(cause, _BROKEN) or (
        isinstance(cause, aiohttp.ClientOSError)
        and (cause.errno in _ERRNOS or isinstance(cause.__cause__, _BROKEN))
    )


def _says(cause: BaseException, kind: type[BaseException], words: str) -> bool:
    return type(cause) is kind and str(cause).startswith(words)


def _is_broken_body(cause: BaseException) -> bool:
    # aiohttp wraps an exception of the caller's own body in this very class, and a
    # failure of the transport in one of its subclasses.
    return (
        type(cause) is aiohttp.ClientConnectionError
        and cause.__cause__ is not None
        and not isinstance(cause.__cause__, aiohttp.ClientError | OSError)
    )
