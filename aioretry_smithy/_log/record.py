"""Read the facts of a call and, nested in it, of each of its attempts."""

from __future__ import annotations

import math
import weakref
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Literal, Self, cast

from .._failures.kept_cause import KeptCause, drop_frames
from .._masking.mask import DEFAULT_MASK
from .call_facts import CallFacts
from .hedge import HedgeFacts
from .outcome import PENDING, HasOutcome
from .upload import NO_BODY, Upload

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Mapping

    from yarl import URL

    from .._masking.mask import Mask
    from .._request.request import HttpRequest
    from .stop_reason import RetryStopReason

NO_CHILDREN: Final[list[Any]] = []  # one for all, since most logs have none
UNMADE: Final[list[Any]] = []
"""In place of the log of the only attempt, which is made when it is asked for."""


class LogRecord(HasOutcome):
    """The facts of a call or an attempt, as they can be read; see :class:`RequestLog`.

    Written by :class:`RequestLog` alone.
    """

    __slots__ = (
        "__weakref__",
        "_began",
        "_call",
        "_children",
        "_deadline",
        "_is_settled",
        "_request_preview",
        "_retry_error",
        "_sent",
        "_sent_headers",
        "_upload",
        "_was_refused",
        "attempt",
        "delay",
        "delay_source",
        "request",
        "started",
        "stop_reason",
    )

    request: HttpRequest
    """The request, without its body."""

    attempt: int | None
    """Which attempt of the call this is, from 1; None on the root."""

    delay: float | None
    """Seconds waited after this attempt; on the root, before the first one."""

    delay_source: (
        Literal["backoff", "retry_after", "rate_limit", "stale_connection"] | None
    )
    """The reason for the :attr:`delay`."""

    stop_reason: RetryStopReason | None
    """Why there was no further attempt (on the root); None after a success."""

    started: float
    """When it began, in seconds of the event loop's clock."""

    _began: float | None  # of its attempt, where another request of that went before
    _children: list[Self]
    _deadline: float | None
    _is_settled: bool  # handed on; what a decorator left running changes nothing
    _request_preview: str | None
    _retry_error: BaseException | KeptCause | None
    _sent: bool
    _sent_headers: Mapping[str, str] | None
    _upload: Upload
    _was_refused: bool  # by a circuit breaker, so that nothing was sent

    # By position: a call of the ordinary lane makes two, and names cost a third more.
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
        self._children = NO_CHILDREN
        self._outcome = PENDING
        self._was_refused = self._is_settled = self._sent = False
        self._upload = NO_BODY
        self._calls = self._race = self._refusal = self._request_preview = None
        self.delay = self.delay_source = self.stop_reason = self._retry_error = None
        self._sent_headers = self._began = None
        if parent is None:
            self.attempt = None
            self._call = call = CallFacts(loop, timeout, default_headers, mask)
            self._deadline = None  # of its first attempt, in the short lane
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
    def retry_error(self) -> Exception | None:
        """The error with which a Smithy strategy refused an attempt (on the root)."""
        error = self._retry_error
        found = error.get() if isinstance(error, KeptCause) else error
        return cast("Exception | None", found)

    @property
    def deadline(self) -> float | None:
        """The moment when its own time runs out, by the event loop's clock."""
        return self._call.deadline if self.attempt is None else self._deadline

    @property
    def sent(self) -> bool:
        """Whether a server may have seen the request, or one of its attempts.

        False of what an open circuit refuses, a refused connection, and an answer that
        a decorator made. A mock and a :class:`.ScriptedTransport` stand for a server.
        """
        return self._sent or any(child._sent for child in self._children)

    @property
    def children(self) -> tuple[Self, ...]:
        """The logs of the attempts, in order; empty where nothing retries."""
        self._make_first_attempt()
        return tuple(self._children)

    @property
    def total_attempts(self) -> int | None:
        """The attempts made so far (on the root; 1 where nothing retries)."""
        return None if self.attempt is not None else len(self._children or (self,))

    @property
    def _was_stale(self) -> bool:
        """Whether its connection of the pool was broken, so that it was sent again."""
        return self.delay_source == "stale_connection"

    @property
    def _attempt_started(self) -> float:
        return self.started if self._began is None else self._began

    @property
    def _first(self) -> Self:
        return self._children[0] if self._children else self

    @property
    def name(self) -> str:
        """The name of the call in logs: its method, or that of the function."""
        return self._first.request.name

    @property
    def request_method(self) -> str | Any:
        """The method, in upper case; None of a function."""
        return self._first.request.method

    @property
    def request_url(self) -> URL | Any:
        """The joined URL, with ``params`` and credentials; None of a function."""
        return self._first.request.full_url()

    @property
    def request_headers(self) -> Mapping[str, str] | Any:
        """The headers of the session and of the request.

        Once there is a response: what aiohttp sent first. None of a function.
        """
        first = self._first
        if first._sent_headers is not None:
            return first._sent_headers
        return first.request.merged_headers(self._call.default_headers)

    @property
    def request_length(self) -> int | None:
        """Bytes of the body that were sent so far, before any compression.

        0 without a body; None where nobody counted, as with a mock.
        """
        return self._first._upload.length

    @property
    def request_duration(self) -> float | None:
        """Seconds to the last byte of the body; None without one, or before that."""
        ended = self._first._upload.ended
        return None if ended is None else ended - self.started

    @property
    def request_content_preview(self) -> str | None:
        """The first characters of a text that was sent.

        None without a :class:`ContentPreviewingClient`. Credentials are in it.
        """
        return self._first._request_preview or self._request_preview

    @property
    def request_started_at(self) -> datetime:
        """The date and time of its start, with a timezone."""
        seconds = self._call.wall_clock + self.started - self._call.started
        return datetime.fromtimestamp(seconds, UTC)

    @property
    def response_timeout(self) -> float | None:
        """Seconds that the call or the attempt had, from its start; None for no limit.

        An attempt ends when its call does all the same.
        """
        deadline = self.deadline
        if deadline is None or deadline == math.inf:
            return None
        # To the microsecond, or clocks that run for long would show in the digits.
        return round(deadline - self.started, 6)

    def _make_first_attempt(self) -> None:
        """Make the log of an attempt that was made without one."""
        if self._children is UNMADE:
            self._children, outcome = NO_CHILDREN, self._outcome
            child = type(self)(self.request, self._call.loop, None, self)
            child.started = self.started
            child._deadline = self._deadline
            child._upload = self._upload
            self._outcome = outcome
            # Otherwise it is under way, and the outcome is what a decorator answered.
            if self._sent:
                self._end_first_attempt()

    def _end_first_attempt(self) -> None:
        """Let the log of the one attempt, if it is made, end as the call did."""
        for child in self._children:
            child._outcome = self._outcome
            child._sent = self._sent
            child._sent_headers = self._sent_headers
            child._is_settled = self._is_settled

    def _follow_stale(self, call: Self) -> Self:
        """Make the log of the request that is sent in place of this one."""
        self.delay, self.delay_source, self._is_settled = 0.0, "stale_connection", True
        drop_frames(self.response_cause)
        log = type(self)(self.request, self._call.loop, None, call)
        log._began, log._deadline = self._attempt_started, self._deadline
        log._request_preview = self._request_preview
        if self._race is not None:
            log._race = HedgeFacts(self._race.after)
        self._call.resends += 1
        return log

    def _start_later(self, seconds: float) -> None:
        self.started += seconds
        if self._deadline is not None:
            self._deadline += seconds

    def _add(self, child: Self) -> int:
        # A decorator outside may begin anew after what looked like the end.
        self._outcome = self._outcome if self._is_settled else PENDING
        if self._children:
            self._children.append(child)
        else:
            self._call.root = weakref.ref(self)
            self._children = [child]
        return len(self._children)
