"""Hold what belongs to one call or attempt: request, log, deadline, attributes."""

from __future__ import annotations

import asyncio
from copy import copy
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from .._call.call import Call, Context, Exchange
from .._call.servers import route_of
from .._errors import bad_argument, is_finite
from .._log.request_log import RequestLog, log_of
from .._text.printable import printable

if TYPE_CHECKING:
    from .._call.outcome import Cut, Holdings, Request
    from .._request.endpoint import Endpoint
    from .._request.request import HttpRequest
    from .options import Options


class ResponseTimeoutMode(StrEnum):
    """Choose what a new response timeout is counted from."""

    SET_FROM_NOW = "set_from_now"
    """From now on."""

    SET_FROM_START = "set_from_start"
    """From the start of the call, or of the attempt."""

    EXTEND = "extend"
    """From the present deadline; without a deadline nothing happens."""


class ClientRequestContext(Context):
    """The context of a call, or of an attempt of a call.

    The context of the call is the *root*. A retrying client gives each attempt a child
    of its own, with its own log and its own deadline. After Armeria's
    ``ClientRequestContext``.
    """

    __slots__ = ()

    if TYPE_CHECKING:
        holdings: Holdings

        @property
        def call(self) -> CallContext: ...

    attempt: int | None
    """Which attempt of the call this is, from 1; None on the root."""

    request: Request
    """The caller's request; on a child, what the retrying client sent in."""

    options: Options | None
    """The options of the blocks of code around the call."""

    deadline: float | None
    """The moment when time runs out, by the event loop's clock; None for never.

    That of an attempt is never later than that of its call.
    """

    @property
    def log(self) -> RequestLog:
        """The log of the call or of the attempt."""
        return log_of(self.call, self.record)

    @property
    def parent(self) -> ClientRequestContext | None:
        """The context of the call whose attempt this is; None on the root."""
        return None

    @property
    def root(self) -> ClientRequestContext:
        """The context of the whole call."""
        return self.parent or self

    @property
    def endpoint(self) -> Endpoint | None:
        """The chosen endpoint of the request; None before the choice.

        None too of a request for which there is no choice. On the root, that of the
        answer.
        """
        route = route_of(self.call, self.record)
        return None if route is None else route.endpoint

    @property
    def attributes(self) -> dict[Any, Any]:
        """Values of the decorators' own, shared by a call and all its attempts."""
        return self.call.attributes

    def remaining(self) -> float:
        """Return the seconds left: ``inf`` without a deadline, 0.0 after it."""
        return self.call.time_of(self.record)

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
            self._move_deadline(self.record.attempt_started + seconds)
        elif not extend:
            raise bad_argument("mode", mode, "a ResponseTimeoutMode")
        else:
            deadline = self.deadline
            self._move_deadline(None if deadline is None else deadline + seconds)

    def clear_response_timeout(self) -> None:
        """Take the deadline away; on a child, that of the attempt alone."""
        self._move_deadline(None)

    def _move_deadline(self, deadline: float | None) -> None:
        if self.attempt is None:
            self.call.move_deadline(deadline)
        else:
            self.record.deadline = deadline

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
        derived = AttemptContext(self.call, request, timeout)
        # Nobody says when it is over.
        derived.derived_from = self
        return derived

    def __repr__(self) -> str:
        attempt = "" if self.attempt is None else f", attempt {self.attempt}"
        request = self.request.described(self.call.mask)
        return printable(f"<ClientRequestContext {request}{attempt}>")


class CallContext(Call, ClientRequestContext):
    """The context of a call: its state."""


class AttemptContext(ClientRequestContext):
    """The context of an attempt: one pass through the clients inside the retrying one.

    The call does not refer to it, but to the facts of its request.

    Args:
        call: The call.
        request: What it sends.
        timeout: Seconds that it may take; None for no limit of its own.
    """

    call: CallContext
    record: Exchange
    attempt: int
    cut: Cut = None
    derived_from: ClientRequestContext | None = None
    holdings: Holdings = None
    is_raced: bool = False
    timeout: float | None

    def __init__(
        self, call: CallContext, request: Request, timeout: float | None = None
    ) -> None:
        self.call = call
        self.request = request
        self.timeout = timeout
        self.record = record = call.begin_request(request.without_body(), timeout)
        self.attempt = record.number - call.resends

    @property
    def parent(self) -> CallContext:
        """The context of the call."""
        return self.call

    root = parent

    @property
    def options(self) -> Options | None:  # type: ignore[override]
        """The options of the blocks of code around the call."""
        options: Options | None = self.call.options
        return options

    @property
    def deadline(self) -> float | None:  # type: ignore[override]
        """The moment when time runs out; never later than that of its call."""
        return self.call.deadline_of(self.record)

    def beside(self, record: Exchange) -> AttemptContext:
        """Return a context for a request of this attempt that takes part in a race."""
        other = copy(self)
        other.is_raced = True
        other.record, other.attempt = record, record.number - self.call.resends
        other.holdings = None
        return other
