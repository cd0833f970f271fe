"""The log of a call and, nested in it, of each of its attempts."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, overload

from ._capture import attach, find_log
from ._mask import DEFAULT_MASK
from ._render import render, to_dict

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Mapping

    import aiohttp
    from yarl import URL

    from ._mask import Mask
    from ._request import HttpRequest
    from ._retry.stop_reason import RetryStopReason

_D = TypeVar("_D")
_MISSING: Final = object()


class RequestLog:
    """What is known of a call, or of one attempt of it.

    The log of a call (the *root*) has the logs of its attempts as :attr:`children`. It
    shows the request side of its first attempt and the response side of its last; its
    durations run from the start of the call. The log is a by-product: nothing waits for
    it. Times are seconds of the event loop. After Armeria's ``RequestLog``.
    """

    __slots__ = (
        "__weakref__",
        "_answer",
        "_body_ended",
        "_cause",
        "_children",
        "_default_headers",
        "_ended",
        "_headers",
        "_length",
        "_loop",
        "_reason",
        "_refusal",
        "_request",
        "_sent_headers",
        "_status",
        "_wall_clock",
        "attempt",
        "delay",
        "delay_source",
        "mask",
        "parent",
        "retry_error",
        "started",
        "stop_reason",
    )

    parent: RequestLog | None
    """The log of the call whose attempt this is; None on the root."""

    attempt: int | None
    """Which attempt of the call this is, from 1; None on the root."""

    delay: float | None
    """Seconds waited after this attempt; on the root, before the first one."""

    delay_source: Literal["backoff", "retry_after", "rate_limit"] | None
    """What asked for the :attr:`delay`."""

    stop_reason: RetryStopReason | None
    """Why there was no further attempt (on the root); None after a success."""

    retry_error: Exception | None
    """What a Smithy strategy refused another attempt with (on the root)."""

    started: float
    """When it began, in seconds of the event loop's clock."""

    mask: Mask
    """What the views of this log hide."""

    def __init__(
        self,
        request: HttpRequest,
        loop: asyncio.AbstractEventLoop,
        *,
        parent: RequestLog | None = None,
        default_headers: Mapping[str, str] | None = None,
        mask: Mask = DEFAULT_MASK,
    ) -> None:
        self._request = request
        self._loop = loop
        self.parent = parent
        self.started = loop.time()
        self._answer: RequestLog | None = None
        self._children: list[RequestLog] | None = None
        self._sent_headers: Mapping[str, str] | None = None
        self._status: int | None = None
        self._reason: str | None = None
        self._headers: Mapping[str, str] | None = None
        self._cause: BaseException | None = None
        self._refusal: BaseException | None = None
        self._length: int | None = None
        self._ended: float | None = None
        self._body_ended: float | None = None
        self.delay = self.delay_source = self.stop_reason = self.retry_error = None
        if parent is None:
            self.attempt = None
            self.mask = mask
            self._default_headers = default_headers
            self._wall_clock = time.time()
        else:
            self.attempt = parent._add(self)
            self.mask = parent.mask
            self._default_headers = parent._default_headers
            self._wall_clock = parent._wall_clock + self.started - parent.started

    @property
    def root(self) -> RequestLog:
        """The log of the whole call."""
        return self if self.parent is None else self.parent.root

    @property
    def children(self) -> tuple[RequestLog, ...]:
        """The logs of the attempts, in order; empty where nothing retries."""
        return tuple(self._children or ())

    @property
    def total_attempts(self) -> int | None:
        """How many attempts were made so far (on the root; 1 where nothing retries)."""
        return None if self.parent is not None else len(self._children or (self,))

    @property
    def name(self) -> str:
        """What the call is named in logs: its method."""
        return self.request_method

    @property
    def request_method(self) -> str:
        """The method, in upper case."""
        return self._first._request.method

    @property
    def request_url(self) -> URL:
        """The URL asked for, joined with the session's base, with ``params``.

        Credentials are in it; the views of the log hide them.
        """
        return self._first._request.full_url()

    @property
    def request_headers(self) -> Mapping[str, str]:
        """The headers of the session and of the request.

        Once there is a response: what aiohttp sent on the first hop.
        """
        first = self._first
        if first._sent_headers is not None:
            return first._sent_headers
        return first._request.merged_headers(first._default_headers)

    @property
    def request_started_at(self) -> datetime:
        """When it began, as a date and time with a timezone."""
        return datetime.fromtimestamp(self._wall_clock, UTC)

    @property
    def response_status(self) -> int | None:
        """The status, or None without a response."""
        return self._last._status

    @property
    def response_reason(self) -> str | None:
        """The reason phrase that came with the status."""
        return self._last._reason

    @property
    def response_headers(self) -> Mapping[str, str] | None:
        """The headers of the response, or None without one."""
        return self._last._headers

    @property
    def response_cause(self) -> BaseException | None:
        """What the call or the attempt failed with, also while reading the body."""
        return self._refusal or self._last._cause

    @property
    def response_length(self) -> int | None:
        """Bytes of the body that were received, decoded, once it ended."""
        return self._last._length

    @property
    def duration(self) -> float | None:
        """Seconds to the headers of the response or to the failure."""
        ended = self._last._ended
        return None if ended is None else ended - self.started

    @property
    def total_duration(self) -> float | None:
        """Seconds to the end of the body or to the failure."""
        ended = self._last._body_ended
        return None if ended is None else ended - self.started

    @property
    def is_complete(self) -> bool:
        """Whether nothing will be added: the body ended or the call failed."""
        return self._last._body_ended is not None

    @property
    def _first(self) -> RequestLog:
        return self._children[0] if self._children else self

    @property
    def _last(self) -> RequestLog:
        return self if self._answer is None else self._answer

    def _add(self, child: RequestLog) -> int:
        self._answer = None
        if self._children is None:
            self._children = []
        self._children.append(child)
        return len(self._children)

    def record_response(self, response: aiohttp.ClientResponse) -> None:
        """Note that *response* arrived; its body is still to come."""
        first_hop = response.history[0] if response.history else response
        self._answer = self._cause = None
        self._length = self._body_ended = None
        self._status = response.status
        self._reason = response.reason
        self._headers = response.headers
        self._sent_headers = first_hop.request_info.headers
        self._ended = self._loop.time()

    def record_failure(self, cause: BaseException) -> None:
        """Note that there is no response, because of *cause*; twice is once."""
        if self.response_cause is cause:
            return
        self._answer = None
        self._cause = cause
        self._length = self._status = self._reason = self._headers = None
        self._ended = self._body_ended = self._loop.time()

    def record_refusal(self, cause: BaseException) -> None:
        """Note that the caller's ``raise_for_status`` turned the response down."""
        self._refusal = cause

    def record_answer(self, child: RequestLog) -> None:
        """Note that the call ends as its attempt *child* ended."""
        self._answer = child

    def forget_bodies(self) -> None:
        """Let go of what was sent: a log may live for long."""
        for log in (self, *self.children):
            log._request = log._request.without_body()

    def end_body(self, length: int, cause: BaseException | None = None) -> None:
        """Note that the body of the response ended, or failed with *cause*."""
        if self._body_ended is None:
            self._body_ended = self._loop.time()
            self._length = length
            self._cause = self._cause or cause
            if cause is not None:
                attach(self.root, cause)

    def render(self) -> str:
        """Draw the call and its attempts as a tree of lines, credentials hidden."""
        return render(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the log and its attempts as JSON values, credentials hidden."""
        return to_dict(self)

    def __reduce__(self) -> tuple[type[None], tuple[()]]:
        # An exception or a log record is pickled without the log that it carries.
        return type(None), ()

    def __deepcopy__(self, memo: object) -> RequestLog:
        return self

    def __repr__(self) -> str:
        return f"<RequestLog {self.render().splitlines()[0]}>"

    @overload
    @staticmethod
    def of(source: object) -> RequestLog: ...
    @overload
    @staticmethod
    def of(source: object, default: _D) -> RequestLog | _D: ...
    @staticmethod
    def of(source: object, default: Any = _MISSING) -> Any:
        """Find the log of the call that *source* came from.

        Args:
            source: A response of a decorated session, or an exception raised through
                one. Where a library wrapped the exception, ``__cause__`` and then
                ``__context__`` are followed.
            default: What to return where there is no log.

        Returns:
            The root log.

        Raises:
            LookupError: There is no log and no *default*.

        >>> RequestLog.of(ValueError("not of a call"), None) is None
        True
        """
        log = find_log(source)
        if log is not None:
            return log
        if default is not _MISSING:
            return default
        raise LookupError(f"no log: {source!r} is not of a call of a decorated session")
