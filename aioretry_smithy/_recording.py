"""What is written down of a call, or of an attempt of it, while it happens."""

from __future__ import annotations

import time
import weakref
from typing import TYPE_CHECKING, Any, Literal, Self, cast

from ._capture import attach
from ._causes import KeptCause, drop_frames
from ._mask import DEFAULT_MASK

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Mapping

    import aiohttp

    from ._mask import Mask
    from ._preview import BodyHead
    from ._request import HttpRequest
    from ._retry.stop_reason import RetryStopReason


class CallFacts:
    """What the logs of a call have in common: it outlives the log of the call."""

    __slots__ = (
        "deadline",
        "default_headers",
        "is_over",
        "loop",
        "mask",
        "root",
        "started",
        "wall_clock",
    )

    root: Callable[[], Any]
    """Finds the log of the call, which must not be kept alive from here."""

    is_over: bool
    """Whether the caller has the response or the exception."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        timeout: float | None,
        default_headers: Mapping[str, str] | None,
        mask: Mask,
    ) -> None:
        self.loop = loop
        self.default_headers = default_headers
        self.mask = mask
        self.wall_clock = time.time()
        self.started = started = loop.time()
        self.deadline = None if timeout is None else started + timeout
        self.is_over = False


class Recording:
    """The writing side of a :class:`RequestLog`."""

    __slots__ = (
        "__weakref__",
        "_answer",
        "_body_ended",
        "_call",
        "_cause",
        "_children",
        "_deadline",
        "_ended",
        "_headers",
        "_length",
        "_reason",
        "_refusal",
        "_request_preview",
        "_response_preview",
        "_retry_error",
        "_sent_headers",
        "_status",
        "attempt",
        "delay",
        "delay_source",
        "request",
        "started",
        "stop_reason",
    )

    request: HttpRequest
    """What is sent, without its body: a log may live for long."""

    attempt: int | None
    """Which attempt of the call this is, from 1; None on the root."""

    delay: float | None
    """Seconds waited after this attempt; on the root, before the first one."""

    delay_source: Literal["backoff", "retry_after", "rate_limit"] | None
    """What asked for the :attr:`delay`."""

    stop_reason: RetryStopReason | None
    """Why there was no further attempt (on the root); None after a success."""

    started: float
    """When it began, in seconds of the event loop's clock."""

    _answer: Self | None
    _children: list[Self] | None
    _sent_headers: Mapping[str, str] | None
    _status: int | None
    _reason: str | None
    _headers: Mapping[str, str] | None
    _call: CallFacts
    _deadline: float | None
    _cause: BaseException | KeptCause | None
    _refusal: KeptCause | None
    _retry_error: BaseException | KeptCause | None
    _length: int | None
    _request_preview: str | None
    _response_preview: BodyHead | None
    _ended: float | None
    _body_ended: float | None

    # By position: each call makes two of them, and names cost a third more.
    def __init__(
        self,
        request: HttpRequest,
        loop: asyncio.AbstractEventLoop,
        timeout: float | None = None,
        parent: Self | None = None,
        default_headers: Mapping[str, str] | None = None,
        mask: Mask = DEFAULT_MASK,
    ) -> None:
        self.request = request
        self._answer = self._children = self._sent_headers = None
        self._status = self._reason = self._headers = self._cause = None
        self._refusal = self._request_preview = self._response_preview = None
        self._length = self._ended = self._body_ended = None
        self.delay = self.delay_source = self.stop_reason = self._retry_error = None
        if parent is None:
            self.attempt = None
            self._call = call = CallFacts(loop, timeout, default_headers, mask)
            self.started = call.started
        else:
            self._call = parent._call
            self.started = started = loop.time()
            self._deadline = None if timeout is None else started + timeout
            self.attempt = parent._add(self)

    @property
    def parent(self) -> Self | None:
        """The log of the call whose attempt this is.

        None on the root, and where nobody keeps the log of the call.
        """
        return None if self.attempt is None else self._call.root()

    @property
    def root(self) -> Self:
        """The log of the whole call; this log where nobody keeps that."""
        return self if self.attempt is None else self._call.root() or self

    @property
    def deadline(self) -> float | None:
        """When its own time runs out, in seconds of the event loop's clock."""
        return self._call.deadline if self.attempt is None else self._deadline

    @property
    def retry_error(self) -> Exception | None:
        """What a Smithy strategy refused another attempt with (on the root)."""
        error = self._retry_error
        found = error.get() if isinstance(error, KeptCause) else error
        return cast("Exception | None", found)

    @property
    def mask(self) -> Mask:
        """What the views of this log hide."""
        return self._call.mask

    @property
    def default_headers(self) -> Mapping[str, str] | None:
        """What the session adds to the headers of each request."""
        return self._call.default_headers

    @property
    def children(self) -> tuple[Self, ...]:
        """The logs of the attempts, in order; empty where nothing retries."""
        return tuple(self._children or ())

    @property
    def attempts_made(self) -> int:
        """How many attempts of the call were begun so far (on the root)."""
        return 0 if self._children is None else len(self._children)

    @property
    def _first(self) -> Self:
        return self._children[0] if self._children else self

    @property
    def _last(self) -> Self:
        return self._answer or self

    @property
    def response_cause(self) -> BaseException | None:
        """What the call or the attempt failed with, also while reading the body.

        When the call is over and nobody has the exception any more, a copy of the same
        class and text.
        """
        # Asked often, as is the status.
        cause = self._refusal or (self._answer or self)._cause
        return cause.get() if isinstance(cause, KeptCause) else cause

    def _add(self, child: Self) -> int:
        # A decorator outside may begin anew after what looked like the end.
        self._answer = self._cause = self._ended = self._body_ended = None
        if self._children is None:
            self._call.root = weakref.ref(self)
            self._children = [child]
        else:
            self._children.append(child)
        return len(self._children)

    def elapsed(self) -> float:
        """Return the seconds since it began."""
        return self._call.loop.time() - self.started

    def record_response(
        self, response: aiohttp.ClientResponse, length: int | None = None
    ) -> None:
        """Note that *response* arrived.

        Args:
            response: The response.
            length: The bytes of its body, where that came with the headers.
        """
        history = response.history
        first_hop = history[0] if history else response
        self._answer = self._cause = self._response_preview = None
        self._status = response.status
        self._reason = response.reason
        self._headers = response.headers
        self._sent_headers = first_hop.request_info.headers
        self._ended = ended = self._call.loop.time()
        self._length = length
        self._body_ended = None if length is None else ended

    def record_failure(self, cause: BaseException) -> None:
        """Note that there is no response, because of *cause*; twice is once."""
        if self.response_cause is cause:
            return
        self._answer = None
        self._cause = KeptCause(cause) if self._call.is_over else cause
        self._length = self._status = self._reason = self._headers = None
        self._response_preview = None
        self._ended = self._body_ended = self._call.loop.time()

    def record_refusal(self, cause: BaseException) -> None:
        """Note that the caller's ``raise_for_status`` turned the response down."""
        self._refusal = KeptCause(cause)

    def record_request_preview(self, preview: str | None) -> None:
        """Keep the first characters of what is sent."""
        self._request_preview = preview

    def record_response_preview(self, head: BodyHead | None) -> None:
        """Keep where the first bytes of the body gather, of the response that came."""
        self._last._response_preview = head

    def record_answer(self, child: Self) -> None:
        """Note that the call ends as its attempt *child* ended."""
        self._answer = child

    def end_body(self, length: int, cause: BaseException | None = None) -> None:
        """Note that the body of the response ended, or failed with *cause*."""
        if self._body_ended is None:
            self._body_ended = self._call.loop.time()
            self._length = length
            if cause is not None and self._cause is None:
                self._fail_body(cause)

    def _fail_body(self, cause: BaseException) -> None:
        if self._call.is_over:
            self._cause = KeptCause(cause)
            attach(self.root, cause)
        else:
            # Then end_call() sees to it.
            self._cause = cause

    def end_call(self) -> None:
        """Keep no exception of the call alive, and none with its frames (on the root).

        While it is under way, strategies look at the exceptions themselves.
        """
        self._call.is_over = True
        failed = (self._answer or self)._cause
        if isinstance(failed, BaseException):
            attach(self, failed)
        if self._retry_error is not None:
            self._retry_error = _kept(self._retry_error)
        for log in (self, *(self._children or ())):
            if log._cause is not None:
                log._cause = _kept(log._cause)


def _kept(cause: BaseException | KeptCause) -> KeptCause:
    if isinstance(cause, KeptCause):
        return cause
    drop_frames(cause)
    return KeptCause(cause)
