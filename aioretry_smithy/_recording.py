"""What is written down of a call, or of an attempt of it, while it happens."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Literal, Self

from ._capture import attach
from ._mask import DEFAULT_MASK

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Mapping

    import aiohttp

    from ._mask import Mask
    from ._preview import BodyHead
    from ._request import HttpRequest
    from ._retry.stop_reason import RetryStopReason


class Recording:
    """The writing side of a :class:`RequestLog`."""

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
        "_mask",
        "_reason",
        "_refusal",
        "_request_preview",
        "_response_preview",
        "_sent_headers",
        "_status",
        "_wall_clock",
        "attempt",
        "deadline",
        "delay",
        "delay_source",
        "loop",
        "parent",
        "request",
        "retry_error",
        "started",
        "stop_reason",
    )

    parent: Self | None
    """The log of the call whose attempt this is; None on the root."""

    request: HttpRequest
    """What is sent, without its body: a log may live for long."""

    attempt: int | None
    """Which attempt of the call this is, from 1; None on the root."""

    deadline: float | None
    """When its own time runs out, in seconds of the event loop's clock."""

    delay: float | None
    """Seconds waited after this attempt; on the root, before the first one."""

    delay_source: Literal["backoff", "retry_after", "rate_limit"] | None
    """What asked for the :attr:`delay`."""

    stop_reason: RetryStopReason | None
    """Why there was no further attempt (on the root); None after a success."""

    retry_error: Exception | None
    """What a Smithy strategy refused another attempt with (on the root)."""

    loop: asyncio.AbstractEventLoop
    """Whose clock the times are of."""

    started: float
    """When it began, in seconds of the event loop's clock."""

    _answer: Self | None
    _children: list[Self] | None
    _sent_headers: Mapping[str, str] | None
    _status: int | None
    _reason: str | None
    _headers: Mapping[str, str] | None
    _cause: BaseException | None
    _refusal: BaseException | None
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
        self.loop = loop
        self.parent = parent
        self.started = started = loop.time()
        self.deadline = None if timeout is None else started + timeout
        self._answer = self._children = self._sent_headers = None
        self._status = self._reason = self._headers = self._cause = None
        self._refusal = self._request_preview = self._response_preview = None
        self._length = self._ended = self._body_ended = None
        self.delay = self.delay_source = self.stop_reason = self.retry_error = None
        if parent is None:
            self.attempt = None
            # What attempts have in common with their call is there once.
            self._mask = mask
            self._default_headers = default_headers
            self._wall_clock = time.time()
        else:
            self.attempt = parent._add(self)

    @property
    def root(self) -> Self:
        """The log of the whole call."""
        return self.parent or self

    @property
    def mask(self) -> Mask:
        """What the views of this log hide."""
        return self.root._mask

    @property
    def default_headers(self) -> Mapping[str, str] | None:
        """What the session adds to the headers of each request."""
        return self.root._default_headers

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
    def _failure(self) -> BaseException | None:
        return self._refusal or self._last._cause

    def _add(self, child: Self) -> int:
        # A decorator outside may begin anew after what looked like the end.
        self._answer = self._cause = self._ended = self._body_ended = None
        if self._children is None:
            self._children = [child]
        else:
            self._children.append(child)
        return len(self._children)

    def elapsed(self) -> float:
        """Return the seconds since it began."""
        return self.loop.time() - self.started

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
        self._ended = ended = self.loop.time()
        self._length = length
        self._body_ended = None if length is None else ended

    def record_failure(self, cause: BaseException) -> None:
        """Note that there is no response, because of *cause*; twice is once."""
        if self._failure is cause:
            return
        self._answer = None
        self._cause = cause
        self._length = self._status = self._reason = self._headers = None
        self._response_preview = None
        self._ended = self._body_ended = self.loop.time()

    def record_refusal(self, cause: BaseException) -> None:
        """Note that the caller's ``raise_for_status`` turned the response down."""
        self._refusal = cause

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
            self._body_ended = self.loop.time()
            self._length = length
            self._cause = self._cause or cause
            if cause is not None:
                attach(self.root, cause)
