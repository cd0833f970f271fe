"""Hold what belongs to one call or attempt: request, log, deadline, attributes."""

from __future__ import annotations

import asyncio
import math
import weakref
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from .._errors import bad_argument, is_finite
from .._failures.kept_cause import CallBound
from .._log.attachment import attached_to
from .._log.late_log import log_of_call, record_success, record_success_of
from .._log.request_log import RequestLog
from .._masking.mask import DEFAULT_MASK
from .._text import printable
from .resources import CallResources

if TYPE_CHECKING:
    from collections.abc import Mapping

    import aiohttp

    from .._log.late_log import AnswerFacts, LateLog
    from .._masking.mask import Mask
    from .._request.request import HttpRequest
    from .options import Options
    from .short_lane import FirstAttempt


class ResponseTimeoutMode(StrEnum):
    """Choose what a new response timeout is counted from."""

    SET_FROM_NOW = "set_from_now"
    """From now on."""

    SET_FROM_START = "set_from_start"
    """From the start of the call, or of the attempt."""

    EXTEND = "extend"
    """From the present deadline; without a deadline nothing happens."""


class ClientRequestContext(CallBound):
    """The context of one call, or of one attempt of it.

    The context of the call is the *root*. A retrying client gives each attempt a child
    of its own, with its own log and its own deadline. After Armeria's
    ``ClientRequestContext``.

    Args:
        request: The request.
        timeout: Seconds that the call, or the attempt, may take; None for no limit.
        parent: For an attempt, the context of the call or of another attempt of it.
        default_headers: The headers that the session adds, for the log of a call.
        mask: What the log of a call hides.
    """

    __slots__ = (
        "_answer",
        "_answer_facts",
        "_answered_at",
        "_attributes",
        "_cap",
        "_cut",
        "_first_attempt",
        "_is_sent",
        "_late",
        "_resources",
        "_retry_config",
        "_session",
        "attempt",
        "log",
        "options",
        "parent",
        "request",
    )

    request: HttpRequest
    """The caller's request; on a child, what the retrying client sent in."""

    log: RequestLog
    """The log of the call or of the attempt."""

    parent: ClientRequestContext | None
    """The context of the call whose attempt this is; None on the root."""

    attempt: int | None
    """Which attempt of the call this is, from 1; None on the root."""

    options: Options | None
    """The options of the blocks of code around the call."""

    # What the short lane has brought, and when, as long as there is no log. When the
    # call is over, a weak reference to it, and what a log keeps of it.
    _answer: Any
    _answer_facts: AnswerFacts
    _answered_at: float

    _attributes: dict[Any, Any] | None

    # When the attempt ends that the call is made in (on the root).
    _cap: float | None

    # What cuts the attempt of a function.
    _cut: Any

    _resources: CallResources | None

    # What the short lane has sent (on the root), until the transport takes it.
    _first_attempt: FirstAttempt | None

    # The settings of the retrying client (on the root), for sdk_headers.
    _retry_config: Any

    # The session of the call (on the root), while that lasts.
    _session: aiohttp.ClientSession | None

    # By position: a call of the ordinary lane makes two, and names cost a third more.
    def __init__(
        self,
        request: HttpRequest,
        timeout: float | None = None,
        parent: ClientRequestContext | None = None,
        default_headers: Mapping[str, str] | None = None,
        mask: Mask = DEFAULT_MASK,
    ) -> None:
        if parent is not None and parent.parent is not None:
            parent = parent.parent
        self.request = request
        self.parent = parent
        if parent is None:
            loop = asyncio.get_running_loop()
            self.log = log = RequestLog(
                request.without_body(), loop, timeout, None, default_headers, mask
            )
            self.options = None
        else:
            outer = parent.log
            self.options = parent.options
            # Most attempts send the very request that the caller made.
            same = request is parent.request
            sent = outer.request if same else request.without_body()
            first = parent._first_attempt
            if first is None or first.log is None:
                log = RequestLog(sent, outer._call.loop, timeout, outer)
            else:
                log = first.log
            self.log = log
        number = log.attempt
        self.attempt = None if number is None else number - log._call.resends
        self._attributes = self._resources = self._retry_config = self._session = None
        self._cap = self._cut = self._first_attempt = self._late = self._answer = None
        # Whether anything of the call was sent (on the root).
        self._is_sent = False

    @classmethod
    def _of(
        cls,
        request: HttpRequest,
        log: RequestLog | None = None,
        late: LateLog | None = None,
    ) -> ClientRequestContext:
        """Make the context of a call with its log, or with what that is made of."""
        ctx = cls.__new__(cls)
        ctx.request = request
        ctx.parent = ctx.attempt = ctx.options = ctx._first_attempt = None
        ctx._attributes = ctx._resources = ctx._retry_config = ctx._answer = None
        ctx._cap = ctx._cut = ctx._session = None
        ctx._late = late
        ctx._is_sent = False
        if log is not None:
            ctx.log = log
        return ctx

    if TYPE_CHECKING:
        # What the log is made of when it is asked for; None once there is one.
        _late: LateLog | None
    else:

        def __getattr__(self, name: str) -> Any:
            """Make the log when it is asked for."""
            late = self._late if name == "log" else None
            if late is None:
                return object.__getattribute__(self, name)  # raises
            self._late, answer = None, self._answer
            self._answer = None
            if isinstance(answer, weakref.ref):
                self.log = log = self._log_afterwards(late, answer())
                return log
            self.log = log = log_of_call(late, self.request)
            if answer is not None:
                record_success(log, answer, self._answered_at)
            return log

    def _log_afterwards(
        self, late: LateLog, answer: aiohttp.ClientResponse | None
    ) -> RequestLog:
        """Make the log of a call that is over, unless it hangs on its response."""
        log: RequestLog | None = None if answer is None else attached_to(answer)
        if log is None:
            log = log_of_call(late, self.request)
            record_success_of(log, self._answer_facts, self._answered_at)
            log._end_call()
        return log

    @property
    def root(self) -> ClientRequestContext:
        """The context of the whole call."""
        return self.parent or self

    @property
    def attributes(self) -> dict[Any, Any]:
        """Values of the decorators' own, shared by a call and all its attempts."""
        root = self.root
        if root._attributes is None:
            root._attributes = {}
        return root._attributes

    @property
    def deadline(self) -> float | None:
        """The moment when time runs out, by the event loop's clock; None for never.

        That of an attempt is never later than that of its call.
        """
        log = self.log
        outer = log._call.deadline
        if self.parent is None:
            return outer
        own = log._deadline
        if outer is None or (own is not None and own < outer):
            return own
        return outer

    def remaining(self) -> float:
        """Return the seconds left: ``inf`` without a deadline, 0.0 after it."""
        deadline = self.deadline
        return (
            math.inf
            if deadline is None
            else max(0.0, deadline - self.log._call.loop.time())
        )

    def set_response_timeout(
        self,
        seconds: float,
        mode: ResponseTimeoutMode = ResponseTimeoutMode.SET_FROM_NOW,
    ) -> None:
        """Move the deadline of the call; on a child, of that attempt alone.

        A request that is already under way keeps the deadline that it started with.
        A call inside an attempt of a function cannot outlast that attempt.

        Args:
            seconds: The new timeout, > 0 and finite; with ``EXTEND`` what is added to
                the present one, which may be negative.
            mode: What *seconds* count from.

        Raises:
            ValueError: *seconds* is out of range, or there is no such *mode*.
        """
        extend = mode == ResponseTimeoutMode.EXTEND
        if not is_finite(seconds) or (seconds <= 0 and not extend):
            expected = "finite" if extend else "finite and > 0"
            raise bad_argument("seconds", seconds, expected)
        if mode == ResponseTimeoutMode.SET_FROM_NOW:
            self._move_deadline(asyncio.get_running_loop().time() + seconds)
        elif mode == ResponseTimeoutMode.SET_FROM_START:
            self._move_deadline(self.log._attempt_started + seconds)
        elif not extend:
            raise bad_argument("mode", mode, "a ResponseTimeoutMode")
        else:
            deadline = self.deadline
            self._move_deadline(None if deadline is None else deadline + seconds)

    def clear_response_timeout(self) -> None:
        """Take the deadline away; on a child, that of the attempt alone."""
        self._move_deadline(None)

    def _move_deadline(self, deadline: float | None) -> None:
        if self.parent is None:
            limits = (limit for limit in (deadline, self._cap) if limit is not None)
            self.log._call.deadline = min(limits, default=None)
        else:
            self.log._deadline = deadline

    def derive(
        self, request: HttpRequest, *, timeout: float | None = None
    ) -> ClientRequestContext:
        """Make the context of one more attempt of this call.

        For a retrying decorator of your own: each call of the delegate gets a child, so
        that each attempt has a log. All are children of the root.

        Args:
            request: What this attempt sends.
            timeout: Seconds that it may take, or None for no limit of its own.
        """
        return ClientRequestContext(request, timeout, self)

    def _follow_stale(self, log: RequestLog) -> None:
        """Get the log of a request that is sent in place of the one with this log."""
        # Without a parent all requests share the log of the call.
        if self.parent is not None:
            self.log = log._follow_stale(self.parent.log)

    def _twin(self) -> ClientRequestContext:
        """Make another context of this attempt, to keep its log when this gets one."""
        twin = ClientRequestContext._of(self.request, self.log)
        twin.parent, twin.attempt = self.parent, self.attempt
        twin.options = self.options
        return twin

    def __repr__(self) -> str:
        attempt = "" if self.attempt is None else f", attempt {self.attempt}"
        request = self.request.described(self.log.mask)
        return printable(f"<{type(self).__name__} {request}{attempt}>")


def resources_of(ctx: ClientRequestContext) -> CallResources:
    """Return the resources of the call that *ctx* belongs to."""
    root = ctx.parent or ctx
    if root._resources is None:
        root._resources = CallResources()
    return root._resources
