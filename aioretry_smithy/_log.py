"""The log of a call and, nested in it, of each of its attempts."""

from __future__ import annotations

import weakref
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Literal, Self, cast

from ._call_facts import CallFacts
from ._capture import attach
from ._causes import KeptCause
from ._mask import DEFAULT_MASK
from ._outcome import PENDING, Outcome
from ._render import add_notes
from ._response_side import ResponseSide

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Mapping

    import aiohttp

    from ._mask import Mask
    from ._request import HttpRequest
    from ._retry.stop_reason import RetryStopReason

_NO_CHILDREN: Final[list[Any]] = []  # one for all, since most logs have none


class RequestLog(ResponseSide):
    """The record of a call, or of one attempt of it.

    The log of a call (the *root*) has those of its attempts as :attr:`children`. It
    shows the request side of the first and the response side of the last; its durations
    run from the start of the call. Times are seconds of the event loop. After Armeria's
    ``RequestLog``.
    """

    __slots__ = (
        "__weakref__",
        "_call",
        "_children",
        "_deadline",
        "_is_settled",
        "_outcome",
        "_refusal",
        "_request_ended",
        "_request_length",
        "_request_preview",
        "_retry_error",
        "_sent",
        "_sent_headers",
        "_was_refused",
        "attempt",
        "delay",
        "delay_source",
        "request",
        "started",
        "stop_reason",
    )

    request: HttpRequest
    """What is sent, without its body."""

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

    _call: CallFacts
    _children: list[Self]
    _deadline: float | None
    _is_settled: bool  # handed on; what a decorator left running changes nothing
    _outcome: Outcome
    _refusal: KeptCause | None
    _request_ended: float | None
    _request_length: int | None
    _request_preview: str | None
    _retry_error: BaseException | KeptCause | None
    _sent: bool
    _sent_headers: Mapping[str, str] | None
    _was_refused: bool  # by a circuit breaker, so that nothing was sent

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
        self._children = _NO_CHILDREN
        self._outcome = PENDING
        self._was_refused = self._is_settled = self._sent = False
        self._request_length = 0
        self._refusal = self._request_ended = self._request_preview = (
            self._sent_headers
        ) = None
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
    def mask(self) -> Mask:
        """The mask that hides secrets in the views of this log."""
        return self._call.mask

    @property
    def children(self) -> tuple[Self, ...]:
        """The logs of the attempts, in order; empty where nothing retries."""
        return tuple(self._children)

    @property
    def total_attempts(self) -> int | None:
        """The attempts made so far (on the root; 1 where nothing retries)."""
        return None if self.attempt is not None else len(self._children or (self,))

    def _add(self, child: Self) -> int:
        # A decorator outside may begin anew after what looked like the end.
        self._outcome = self._outcome if self._is_settled else PENDING
        if self._children:
            self._children.append(child)
        else:
            self._call.root = weakref.ref(self)
            self._children = [child]
        return len(self._children)

    def _record_response(
        self, response: aiohttp.ClientResponse, length: int | None = None
    ) -> None:
        """Note that *response* arrived, with *length* bytes where that was all."""
        history = response.history
        first_hop = history[0] if history else response
        self._sent_headers = first_hop.request_info.headers
        self._outcome = Outcome(self._call.loop.time(), response, length)
        if length is not None and self._call.waiters:
            self._call.wake()

    def _record_failure(self, cause: BaseException) -> None:
        """Note that there is no response, because of *cause*; twice is once."""
        if not self._is_settled and self.response_cause is not cause:
            kept = KeptCause(cause) if self._call.is_over else cause
            self._outcome = Outcome(self._call.loop.time(), cause=kept)
            if self._call.waiters:
                self._call.wake()

    def _record_refusal(self, cause: BaseException) -> None:
        """Note that the caller's ``raise_for_status`` turned the response down."""
        self._refusal = KeptCause(cause)

    def _record_answer(self, child: Self) -> None:
        """Note that the call ends as its attempt *child* ended."""
        self._outcome = child._outcome

    def _end_body(self, length: int, cause: BaseException | None = None) -> None:
        """Note that the body of the response ended, or failed with *cause*."""
        outcome = self._outcome
        if outcome.ended is None:
            return
        if outcome.length is None:
            outcome.length = length
        if outcome.body_ended is None:
            if cause is None:
                outcome.body_ended = self._call.loop.time()
                if self._call.waiters:
                    self._call.wake()
            else:
                self._fail_body(outcome, cause)

    def _fail_body(self, outcome: Outcome, cause: BaseException) -> None:
        """Note that reading the body of a response failed."""
        if outcome.body_ended is not None or self._outcome is not outcome:
            return
        outcome.body_ended = self._call.loop.time()
        if self._call.is_over:
            outcome.cause = KeptCause(cause)
            self.root._annotate(cause)
        else:
            outcome.cause = cause
        if self._call.waiters:
            self._call.wake()

    def _annotate(self, cause: BaseException) -> None:
        """Let *cause*, which the caller gets, tell of the call."""
        attach(self, cause)
        # An exception of somebody's own may refuse to be written on.
        with suppress(Exception):
            add_notes(self, cause)

    def _end_call(self) -> None:
        """Keep no exception of the call alive, and no frames (on the root)."""
        self._call.is_over = self._is_settled = True
        if isinstance(self._outcome.cause, BaseException):
            attach(self, self._outcome.cause)
        if self._retry_error is not None:
            self._retry_error = KeptCause.of(self._retry_error)
        logs: list[RequestLog] = [self, *self._children]
        for log in logs:
            log._is_settled |= log._outcome.ended is not None
            if (cause := log._outcome.cause) is not None:
                log._outcome.cause = KeptCause.of(cause)
        if self._call.waiters:
            self._call.wake()
