"""Hold the outcome of a call or of a request: a response or a failure.

That of a test kit often has a status and a body, and knows of no connection.
"""

from __future__ import annotations

from enum import Enum, StrEnum
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from aiohttp.connector import Connection
from yarl import URL

from .._failures.hints import as_headers

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Mapping, Sequence

    import aiohttp
    from multidict import MultiMapping

    from .._failures.kept_cause import KeptCause
    from .._text.printable import BodyHead


Request: TypeAlias = Any
"""An ``HttpRequest``, or an ``RpcRequest`` in the call of a function."""

Result: TypeAlias = Any
"""A response of aiohttp, or whatever a function has returned."""

Attributes: TypeAlias = dict[Any, Any]
"""Values of the decorators' own, by keys of their own."""

Cut: TypeAlias = Any
"""The timer that cancels a function at its deadline; ``_session`` has the class."""

Holdings: TypeAlias = Any
"""The limits and trials that an attempt holds; ``_context`` has the class."""


class Nothing(Enum):
    """Marks a result that is missing, since None may be a result."""

    NOTHING = "NOTHING"


NOTHING: Final = Nothing.NOTHING
"""Stands for the result of what has failed, since None may be a result."""


class RetryStopReason(StrEnum):
    """The reason why a retrying client made no further attempt."""

    NO_RETRY = "no_retry"
    """The strategy wanted no retry of the outcome."""

    MAX_TOTAL_ATTEMPTS = "max_total_attempts"
    """The attempts allowed for one call were used up."""

    BACKOFF_EXHAUSTED = "backoff_exhausted"
    """The backoff had no further delay."""

    STOP_AFTER_DELAY = "stop_after_delay"
    """The next attempt would have begun too long after the first one."""

    DEADLINE = "deadline"
    """The deadline passed, or the next attempt would have begun after it."""

    RETRY_AFTER_TOO_LONG = "retry_after_too_long"
    """The server asked for a longer wait than the settings or the deadline allow."""

    LIMITER = "limiter"
    """The limiter refused the retry."""

    BODY_NOT_REPLAYABLE = "body_not_replayable"
    """The body was read by an earlier attempt and cannot be sent whole again."""

    REFUSED = "refused"
    """A circuit breaker, a limit or a group on this side refused the last attempt."""

    CANCELLED = "cancelled"
    """The caller cancelled the call."""

    ERROR = "error"
    """The strategy, or other code of the caller, raised."""


def connection_of(response: Result) -> Result:
    """Return the connection of the response; None once the body is received."""
    return getattr(response, "connection", None)


def content_of(response: Result) -> object:
    """Return the stream of the body; None where there is none."""
    return getattr(response, "content", None)


def arrived_of(response: Result) -> int:
    """Return how many bytes of the body have come into its stream."""
    content = getattr(response, "content", None)
    arrived = getattr(content, "total_bytes", 0)
    return arrived if type(arrived) is int else 0


def headers_of(response: Result) -> MultiMapping[str]:
    """Return the headers; the case of their names does not count."""
    return as_headers(getattr(response, "headers", None))


def sent_headers_of(response: Result) -> Mapping[str, str] | None:
    """Return the headers of the first request sent; None if unknown."""
    history = history_of(response)
    request = getattr(history[0] if history else response, "request_info", None)
    headers: Mapping[str, str] | None = getattr(request, "headers", None)
    return headers


def history_of(response: Result) -> Sequence[Result]:
    """Return the answers of the hops before, the first one first."""
    return getattr(response, "history", None) or ()


def url_of(response: Result) -> URL | None:
    """Return the URL of the response; None if unknown."""
    url = getattr(response, "url", None)
    return URL(url) if isinstance(url, str | URL) else None


def end_with(connection: Connection, end: Callable[[], None]) -> None:
    """Call *end* once: when a response releases its connection, or that is closed.

    aiohttp closes the connections of a session with it, and tells no response that is
    kept unread; neither does a server that hangs up.

    Args:
        connection: The connection of a response.
        end: What is called; it has no reference to the response.
    """
    # Other classes stand for several connections, of which one may end early.
    protocol = connection.protocol if type(connection) is Connection else None
    closed = None if protocol is None else protocol.closed
    if closed is None:
        connection.add_callback(end)
    else:
        connection.add_callback(_Watch(closed, end).let_go)
        # Once for all requests, lest asyncio says that nobody has looked.
        closed.remove_done_callback(_look_at)
        closed.add_done_callback(_look_at)


class _Watch:
    """Watches for the close of a connection, until a response releases it.

    Args:
        closed: Is done when the connection is closed.
        end: What is called then.
    """

    __slots__ = ("_closed", "_end")

    def __init__(self, closed: asyncio.Future[None], end: Callable[[], None]) -> None:
        self._closed = closed
        self._end: Callable[[], None] | None = end
        closed.add_done_callback(self._hear)

    def let_go(self) -> None:
        """Call the callback, and stop watching the connection."""
        end, self._end = self._end, None
        if end is not None:
            # The next request on the connection is none of it.
            self._closed.remove_done_callback(self._hear)
            end()

    def _hear(self, closed: asyncio.Future[None]) -> None:
        self.let_go()


def _look_at(closed: asyncio.Future[None]) -> None:
    if not closed.cancelled():
        closed.exception()


class Outcome:
    """The facts of a response or a failure; not these themselves.

    A call shares that of the request that it ends with. What each outcome of a kind has
    is set by its class alone: Python is slow to write what a base has a default of.
    """

    ended: float | None
    """When the headers came, or the failure; None while all is under way."""

    cause: BaseException | KeptCause | None
    """The failure; beside a status, that of reading the body."""

    body_ended: float | None
    """When the body ended, or failed."""

    length: int | None
    """Bytes of the body, once that is known."""

    status: int | None

    reason: str | None

    headers: Mapping[str, str] | None

    sent_headers: Mapping[str, str] | None
    """The headers that aiohttp sent first."""

    is_injected: bool = False
    """Whether the outcome was caused by an injected fault."""

    is_unwanted: bool = False
    """Whether a strategy wanted a retry after the outcome, made or not."""

    part: Outcome | None = None
    """That of the last part, of a body that came in several."""

    preview: BodyHead | None = None
    """The collected first bytes of the body."""


class _Pending(Outcome):
    """The placeholder outcome of a request under way."""

    ended = cause = body_ended = length = None
    status = reason = headers = sent_headers = None


class Answered(Outcome):
    """The facts of a response.

    Args:
        ended: When the headers came.
        response: The response.
        headers: Its headers.
        length: Bytes of the body, where that is all here.
    """

    cause: BaseException | KeptCause | None = None

    def __init__(
        self,
        ended: float,
        response: aiohttp.ClientResponse,
        headers: Mapping[str, str],
        length: int | None = None,
    ) -> None:
        self.ended = ended
        self.status = response.status
        self.headers = headers
        try:
            self.reason = response.reason
            hops = response.history
            self.sent_headers = (hops[0] if hops else response).request_info.headers
        except AttributeError:
            self.reason = getattr(response, "reason", None)
            self.sent_headers = sent_headers_of(response)
        self.length = length
        self.body_ended = None if length is None else ended


class Ended(Outcome):
    """The facts of a failure, or of the return of a function."""

    length: int | None = None
    status: int | None = None
    reason: str | None = None
    headers: Mapping[str, str] | None = None
    sent_headers: Mapping[str, str] | None = None

    def __init__(
        self, ended: float, cause: BaseException | KeptCause | None = None
    ) -> None:
        self.ended = self.body_ended = ended
        self.cause = cause

    def keep_answer(self, answer: Outcome) -> None:
        """Take over the facts of the answer whose body has failed."""
        self.ended = answer.ended
        self.status, self.reason = answer.status, answer.reason
        self.headers, self.sent_headers = answer.headers, answer.sent_headers
        self.length, self.preview = answer.length, answer.preview


PENDING: Final[Outcome] = _Pending()
"""The shared placeholder outcome of all requests under way; never written to."""
