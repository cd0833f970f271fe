"""Hold what belongs to one call or attempt: request, log, deadline, attributes."""

from __future__ import annotations

import asyncio
import weakref
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from .._call.call import Attempt, Call
from .._call.defaults import OF_ALL, CallDefaults
from .._call.tries import route_of
from .._errors import bad_argument, is_finite
from .._failures.kept_cause import CallBound
from .._log.request_log import RequestLog, log_of
from .._masking.mask import DEFAULT_MASK
from .._text import printable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .._call.kinds import Request
    from .._call.record import Record
    from .._masking.mask import Mask
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
        "__weakref__",
        "_attributes",
        "_call",
        "_parent",
        "_scope",
        "options",
        "request",
    )

    request: Request
    """The caller's request; on a child, what the retrying client sent in."""

    options: Options | None
    """The options of the blocks of code around the call."""

    # Views of the state: of the call, and of what this is the context of.
    _call: Call
    _scope: Call | Attempt

    # Those of the call, once they were asked for.
    _attributes: dict[Any, Any] | None

    # That of the call, once it was asked for, unless there was one already.
    _parent: ClientRequestContext | None

    def __init__(
        self,
        request: HttpRequest,
        timeout: float | None = None,
        parent: ClientRequestContext | None = None,
        default_headers: Mapping[str, str] | None = None,
        mask: Mask = DEFAULT_MASK,
    ) -> None:
        if parent is None:
            loop = asyncio.get_running_loop()
            defaults = CallDefaults(mask, default_headers)
            call = scope = Call(request, loop, timeout, defaults)
            self._show(call, scope, None)
        else:
            call = parent._call
            self._show(call, Attempt(call, request, timeout), parent.root)

    def _show(
        self, call: Call, scope: Call | Attempt, parent: ClientRequestContext | None
    ) -> None:
        self._call = call
        call.care = OF_ALL
        self._scope = scope
        self._attributes = call.attributes
        self.options = call.options
        self._parent = parent
        self.request = scope.counted_request
        scope.context = weakref.ref(self)

    @property
    def parent(self) -> ClientRequestContext | None:
        """The context of the call whose attempt this is; None on the root."""
        if self._parent is None and self._scope is not self._call:
            self._parent = root = context_of(self._call, self._call)
            root._attributes = root._attributes or self._attributes
        return self._parent

    @property
    def call(self) -> Call:
        """The state of the call."""
        return self._call

    @property
    def record(self) -> Record:
        """The facts of the call, or of the request of the attempt that counts."""
        return self._scope.record

    @property
    def log(self) -> RequestLog:
        """The log of the call or of the attempt."""
        return log_of(self._call, self._scope.record)

    @property
    def attempt(self) -> int | None:
        """Which attempt of the call this is, from 1; None on the root."""
        return self._scope.number

    @property
    def root(self) -> ClientRequestContext:
        """The context of the whole call."""
        return self.parent or self

    @property
    def endpoint(self) -> Endpoint | None:
        """The one of several servers that this goes to; None before it is chosen.

        None too of a request for which there is no choice. On the root, that of the
        answer.
        """
        route = route_of(self._call, self._scope.record)
        return None if route is None else route.endpoint

    @property
    def attributes(self) -> dict[Any, Any]:
        """Values of the decorators' own, shared by a call and all its attempts."""
        root = self.root
        if root._attributes is None:
            root._attributes = attributes_of(self._call)
        return root._attributes

    @property
    def deadline(self) -> float | None:
        """The moment when time runs out, by the event loop's clock; None for never.

        That of an attempt is never later than that of its call.
        """
        return self._call.deadline_of(self._scope.record)

    def remaining(self) -> float:
        """Return the seconds left: ``inf`` without a deadline, 0.0 after it."""
        return self._call.remaining(self._scope.record)

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
            self._move_deadline(self._scope.record.attempt_started + seconds)
        elif not extend:
            raise bad_argument("mode", mode, "a ResponseTimeoutMode")
        else:
            deadline = self.deadline
            self._move_deadline(None if deadline is None else deadline + seconds)

    def clear_response_timeout(self) -> None:
        """Take the deadline away; on a child, that of the attempt alone."""
        self._move_deadline(None)

    def _move_deadline(self, deadline: float | None) -> None:
        if self._scope is self._call:
            self._call.move_deadline(deadline)
        else:
            self._scope.record.deadline = deadline

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

    def __repr__(self) -> str:
        attempt = "" if self.attempt is None else f", attempt {self.attempt}"
        request = self.request.described(self._call.mask)
        return printable(f"<{type(self).__name__} {request}{attempt}>")


def context_of(call: Call, scope: Call | Attempt) -> ClientRequestContext:
    """Return the context of a call or an attempt: one, as long as it is kept."""
    known: ClientRequestContext | None
    known = None if scope.context is None else scope.context()
    if known is None:
        root = None if scope is call else call.context
        parent = None if root is None else root()
        known = ClientRequestContext.__new__(ClientRequestContext)
        known._show(call, scope, parent)
    return known


def state_of(ctx: ClientRequestContext) -> tuple[Call, Call | Attempt]:
    """Return the call that a context shows, and its attempt, or the call again.

    Raises:
        ValueError: It is no context.
    """
    try:
        return ctx._call, ctx._scope
    except AttributeError:
        raise _no_context(ctx) from None


def record_of(ctx: ClientRequestContext) -> tuple[Call, Record]:
    """Return the call that a context shows, and the record that counts for it.

    Raises:
        ValueError: It is no context.
    """
    try:
        call, scope = ctx._call, ctx._scope
    except AttributeError:
        raise _no_context(ctx) from None
    return call, scope.record


def _no_context(given: object) -> ValueError:
    # Mostly the request: a decorator has swapped the arguments of its delegate.
    return bad_argument("ctx", given, "a ClientRequestContext, before the request")


def attributes_of(call: Call) -> dict[Any, Any]:
    """Return the attributes of a call, made where it had none."""
    if call.attributes is None:
        call.attributes = {}
    return call.attributes
