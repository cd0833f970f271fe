"""Classify failed attempts by their exceptions: kind, origin, retry safety."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, Final, Literal, NamedTuple

import aiohttp

from .._errors import RefusedRequestError, UnprocessedRequestError, bad_argument
from .hints import NAMES, RaisedAnswer, RetryInfo, attribute_of, may_tell, retry_after


def peel(cause: BaseException) -> BaseException:
    """Return the only exception in a group, however deep; no group stays the same.

    A task group around a single task raises such a group. After Armeria's
    ``Exceptions.peel``.

    Args:
        cause: The exception of the attempt.

    >>> peel(ExceptionGroup("tasks", [TimeoutError("too late")]))
    TimeoutError('too late')
    """
    while isinstance(cause, BaseExceptionGroup) and len(cause.exceptions) == 1:
        cause = cause.exceptions[0]
    return cause


def layers(cause: BaseException) -> Iterator[BaseException]:
    """Yield an exception, then the nested exceptions while each is a group of one."""
    yield cause
    while isinstance(cause, BaseExceptionGroup) and len(cause.exceptions) == 1:
        cause = cause.exceptions[0]
        yield cause


SERVER_ERRORS: Final = frozenset(range(500, 600))
"""5xx; HTTP has no classes above, though servers send some."""

TRANSIENT: Final[frozenset[int | None]] = SERVER_ERRORS | {408, 429}
"""The statuses after which a retry may help."""


class RetrySafety(StrEnum):
    """Whether a request whose attempt failed may be sent again."""

    YES = "yes"
    """The server surely did not process it; any method may be sent again."""

    MAYBE = "maybe"
    """Unknown; only a request that is idempotent may be sent again."""

    NO = "no"
    """A retry is pointless or harmful, as the same failure would follow."""


_BROKEN = (ConnectionResetError, ConnectionAbortedError, BrokenPipeError)

# A tuple: what an error of a user's has for a number may have no hash.
_ERRNOS = errno.ECONNRESET, errno.ECONNABORTED, errno.EPIPE, errno.ESHUTDOWN

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

BAD_CERTIFICATE = (
    aiohttp.ClientConnectorCertificateError,
    aiohttp.ServerFingerprintMismatch,
)
"""Failures to prove the identity of a server."""


# Raised when the caller aborts an upload; before 3.14 there is no such class.
_ABORTED: tuple[type[BaseException], ...] = tuple(
    filter(None, [getattr(aiohttp, "UploadAbortedError", None)])
)

_PERMANENT = (
    RefusedRequestError,
    asyncio.CancelledError,
    *_BAD_REDIRECT,
    *_BAD_URL,
    *BAD_CERTIFICATE,
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
    *BAD_CERTIFICATE,
)


class Kind(NamedTuple):
    """The classification of an exception by its class, errno, text and cause."""

    is_permanent: bool
    """Whether a retry would fail in the same way."""

    is_bug: bool
    """Whether the exception is a programming error, or was raised by a request body."""

    is_bad_redirect: bool
    """Whether a server has answered with a redirect that cannot be followed."""

    is_before_sending: bool
    """Whether such an exception is only raised before the request is sent."""

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
        """Classify an exception.

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
    is_outer = isinstance(cause, aiohttp.ClientConnectorError)
    error = attribute_of(cause, "os_error", cause) if is_outer else cause
    return isinstance(error, OSError) and (
        attribute_of(error, "errno") == errno.ETIMEDOUT
        or attribute_of(error, "winerror") == _ERROR_SEM_TIMEOUT
    )


def _is_broken_connection(cause: BaseException) -> bool:
    if isinstance(cause, aiohttp.ClientConnectorError):
        return False
    if isinstance(cause, aiohttp.ServerDisconnectedError):
        # Otherwise it is the part of the head that came; a user's class may have none.
        return isinstance(attribute_of(cause, "message", ""), str)
    return isinstance(cause, _BROKEN) or (
        isinstance(cause, aiohttp.ClientOSError)
        and (
            attribute_of(cause, "errno") in _ERRNOS
            or isinstance(cause.__cause__, _BROKEN)
        )
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


_KEY: Final = "_aioretry_smithy_failure"
"""The attribute of an exception with its :class:`Failure`."""


class Failure:
    """The classification of an exception, shared by all decorators.

    It does not refer to the exception, which refers to it.
    """

    info: RetryInfo
    """The exception's own Smithy attributes."""

    speaks: bool
    """Whether the exception has any, or an answer: a decorator may change these."""

    reached_server: bool
    """Whether a server has seen the request before the attempt failed.

    For example it answered an earlier hop with a redirect, or an earlier send.
    """

    raised_by_caller = False
    """Whether the caller's own object raised it, not the transport."""

    connection_made: bool | None = None
    """Whether there was a connection to the server; None if that does not matter.

    False if aiohttp failed while connecting. True if a bug of a library broke it.
    """

    broke_at_proxy = False
    """Whether there was no connection because a proxy failed, not the server."""

    of_no_server = False
    """Whether a hook or a middleware has failed, and no server had a part in it."""

    queue: Literal["limit", "pool", "token"] | None = None
    """The queue of this side that the request ended in, which is no server's doing."""

    sibling_timed_out = False
    """Whether the deadline of the call cut another request for the same answer."""

    def __init__(self, cause: BaseException, learnt: Mapping[str, Any]) -> None:
        self.kind = Kind.of(cause)
        self.reached_server = self.kind.is_bad_redirect
        self.read(cause)
        self._of = id(cause)
        vars(self).update(learnt)

    def read(self, cause: BaseException) -> None:
        """Read the attributes of the exception, which a decorator may have changed."""
        self.info = RetryInfo.of(cause)
        self._raised = RaisedAnswer.of(cause)
        self.speaks = (
            isinstance(cause, aiohttp.ClientResponseError)
            or not NAMES.isdisjoint(vars(cause))
            or may_tell(type(cause))
        )

    def is_of(self, cause: BaseException) -> bool:
        """Say whether this classifies *cause* itself, not the original of a copy."""
        return self._of == id(cause)

    def learnt(self) -> dict[str, Any]:
        """Return the facts that were learnt of the request, by their names."""
        own = {"_of", "_raised", "info", "kind", "speaks"}
        return {name: fact for name, fact in vars(self).items() if name not in own}

    def __reduce__(self) -> tuple[type, tuple[dict[str, Any]]]:
        """Pickle the facts as a plain dict, readable without this library."""
        return dict, (self.learnt(),)

    @property
    def safety(self) -> RetrySafety:
        """The retry safety of the failure, as :func:`retry_safety` returns it."""
        is_safe = self.info.is_retry_safe
        if is_safe is None or self.raised_by_caller:
            return self.safety_by_kind
        return RetrySafety.YES if is_safe else RetrySafety.NO

    @property
    def safety_by_kind(self) -> RetrySafety:
        """The retry safety without regard to the exception's ``is_retry_safe``.

        For limiters and circuit breakers: a server that must not be asked again may be
        down all the same.
        """
        info, status = self.info, self.status
        may_pass = info.is_throttling_error or info.is_timeout_error
        if (
            self.raised_by_caller
            or self.kind.is_permanent
            or (self.kind.is_bug and self.connection_made is None)
            or (info.fault == "client" and not may_pass)
            or (status is not None and status not in TRANSIENT)
        ):
            return RetrySafety.NO
        return RetrySafety.YES if self.is_unprocessed else RetrySafety.MAYBE

    @property
    def forbids_retry(self) -> bool:
        """Whether the exception's ``is_retry_safe`` is False.

        A rule that names its class may retry failures that are ``NO`` for other
        reasons, but not this one.
        """
        return self.info.is_retry_safe is False

    @property
    def is_unprocessed(self) -> bool:
        """Whether the server surely saw nothing of the request."""
        return not self.reached_server and (
            self.kind.is_before_sending
            or self.connection_made is False
            or self.queue is not None
        )

    @property
    def is_of_proxy(self) -> bool:
        """Whether a proxy, not the server, is what failed."""
        return self.kind.is_of_proxy or self.broke_at_proxy

    @property
    def is_of_server(self) -> bool:
        """Whether the failure is that of a server, or of the way to it.

        Not one in a queue of this side, nor a mistake of the caller's, of a hook or of
        a middleware.
        """
        if self.queue is not None or self.of_no_server:
            return False
        return self.safety_by_kind is not RetrySafety.NO

    @property
    def ran_out(self) -> bool:
        """Whether a limit of time ended the request, or another for the same answer.

        Also one in the queue of a connection pool or of a limit.
        """
        return self.kind.is_timeout or self.queue is not None or self.sibling_timed_out

    @property
    def broke_connection(self) -> bool:
        """Whether the server cut an established connection."""
        return self.kind.is_broken_connection and not self.raised_by_caller

    @property
    def answer(self) -> RaisedAnswer | None:
        """The answer of a server or of a proxy that was raised; None without one.

        What the caller's own object raised is an answer to something else.
        """
        return None if self.raised_by_caller else self._raised

    @property
    def status(self) -> int | None:
        """The status of the answer that was raised; None without one."""
        answer = self.answer
        return None if answer is None else answer.status

    @property
    def answer_of_server(self) -> RaisedAnswer | None:
        """The raised answer, if it came from the server and not from a proxy.

        Nor from the service that a token was fetched from.
        """
        answer = None if self.queue is not None else self.answer
        return None if answer is None or answer.is_of_tunnel else answer

    @property
    def status_of_server(self) -> int | None:
        """The status of the server that was raised."""
        answer = self.answer_of_server
        return None if answer is None else answer.status

    def hint(self, now: float | None = None) -> float | None:
        """Return the requested wait in seconds: from the exception, or its answer.

        Args:
            now: The time of day when it came, as for :func:`.retry_after`.
        """
        if self.info.retry_after is not None:
            return self.info.retry_after
        answer = self.answer
        return None if answer is None else retry_after(answer.headers, now=now)


_NO_FAILURE: Final = Failure(Exception(), {})


def failure_of(cause: BaseException | None) -> Failure:
    """Return the judgement of an exception, or of the only one in a group.

    That of None says nothing.
    """
    if cause is None:
        return _NO_FAILURE
    own = vars(cause := peel(cause))
    found = own.get(_KEY, {})
    if not isinstance(found, Failure):
        return Failure(cause, found)
    if not found.is_of(cause):
        return Failure(cause, found.learnt())
    if found.speaks or not NAMES.isdisjoint(own):
        found.read(cause)
    return found


def judge(cause: BaseException) -> Failure:
    """Return the classification of a caught exception, stored on the exception."""
    failure = failure_of(cause)
    vars(peel(cause))[_KEY] = failure
    return failure


def ran_out(cause: BaseException | None) -> bool:
    """Say whether a limit of time ended a request; of a group, each of its requests."""
    pending = [] if cause is None else [cause]
    # Groups may be nested deeper than Python lets functions be.
    while pending:
        failure = peel(pending.pop())
        if failure_of(failure).ran_out:
            continue
        if not isinstance(failure, BaseExceptionGroup):
            return False
        pending += failure.exceptions
    return cause is not None


def copy_marks(error: BaseException, cause: BaseException | None) -> None:
    """Copy what is known of the queue and the server from *cause* to *error*."""
    failure, behind = judge(error), failure_of(cause)
    failure.queue, failure.reached_server = behind.queue, behind.reached_server
    failure.connection_made = behind.connection_made
    failure.broke_at_proxy = behind.broke_at_proxy


def retry_safety(cause: BaseException) -> RetrySafety:
    """Say whether a request that failed with *cause* may be sent again.

    =========  ======================================================
    safety     failure
    =========  ======================================================
    ``YES``    refused, unknown host, no connection in time,
               whichever limit passed, a proxy that is not there,
               too busy, or broke before there was a tunnel,
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
    return failure_of(cause).safety


def is_unprocessed(cause: BaseException | None) -> bool:
    """Say whether the server surely saw nothing of a request that failed.

    True for a refused connection, any timeout before there was a connection or in the
    queue of the session's own pool, a name that does not resolve, a failed TLS
    handshake, a proxy that refuses or that breaks before there is a tunnel, a bad URL
    and :class:`UnprocessedRequestError`; never after a
    redirect, nor if an earlier send within the attempt reached the server. An open
    circuit does not count: test for :class:`FailFastError`.

    Args:
        cause: The exception of the attempt, or None.

    Raises:
        ValueError: *cause* is neither.

    >>> is_unprocessed(None)
    False
    """
    return _checked(cause).is_unprocessed


def is_timeout(cause: BaseException | None) -> bool:
    """Say whether an attempt failed because time ran out.

    True for all of aiohttp's timeouts, from the connection to the body, and
    for a timeout that the operating system reports.

    Args:
        cause: The exception of the attempt, or None.

    Raises:
        ValueError: *cause* is neither.

    >>> is_timeout(aiohttp.SocketTimeoutError()), is_timeout(None)
    (True, False)
    """
    return _checked(cause).kind.is_timeout


def _checked(cause: BaseException | None) -> Failure:
    if cause is None or isinstance(cause, BaseException):
        return failure_of(cause)
    raise bad_argument("cause", cause, "an exception, or None")


IN_POOL: Final = ", and was in the pool's queue"
"""Ends the text about a time limit that passed there."""

TOO_LATE: Final = "no free connection in the pool in time"
"""The message that replaces aiohttp's for a wait in the pool's queue."""

# What aiohttp says when its limit for a connection has passed, which covers the queue.
_NO_CONNECTION: Final = "Connection timeout to host "


def note_wait_in_pool(cause: BaseException) -> None:
    """Mark a timeout as reached in the queue of the connection pool.

    aiohttp says that the server gave no connection, or nothing; its text is replaced.
    """
    judge(cause).queue = "pool"
    text = str(cause)
    if isinstance(cause, aiohttp.ConnectionTimeoutError):
        if text.startswith(_NO_CONNECTION):
            cause.args = (f"{TOO_LATE}, for {text.removeprefix(_NO_CONNECTION)}",)
    elif type(cause) is TimeoutError and not text:
        cause.args = (TOO_LATE,)


def was_in_pool(cause: BaseException | None) -> bool:
    """Say whether time ran out in the queue of the connection pool."""
    return failure_of(cause).queue == "pool"


def where_passed(cause: BaseException | None) -> str:
    """Return a phrase for a timeout in the pool's queue; empty for other timeouts."""
    return "in the pool's queue" if was_in_pool(cause) else ""
