"""Hold what belongs to one call or attempt: request, log, deadline, attributes."""

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager
from contextvars import ContextVar, Token
from copy import copy
from dataclasses import dataclass, field, replace
from enum import Enum, StrEnum
from types import MappingProxyType
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Final,
    Literal,
    Self,
    TypeAlias,
    TypeVar,
)

from .._call.call import Call, Context, Exchange
from .._call.tries import route_of
from .._errors import bad_argument, is_finite
from .._log.request_log import CaptureBlock, RequestLog, collecting, log_of
from .._text.printable import printable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping

    from .._call.outcome import Cut, Holdings, Request
    from .._request.endpoint import Endpoint
    from .._request.request import HttpRequest


_T = TypeVar("_T")


class Unset(Enum):
    """Marks an argument that is left out, where None has a meaning."""

    UNSET = "UNSET"


UNSET: Final = Unset.UNSET


@dataclass(frozen=True, slots=True)
class RequestOptions:
    """The settings of a block of code; a setting left out changes nothing."""

    retry: Any = None
    """A :class:`RetryConfig` in place of the retrying client's."""

    response_timeout: float | Literal[Unset.UNSET] | None = UNSET
    """Seconds that a call may take; None for no limit."""

    idempotent: bool | None = None
    """Whether the server may see a request twice; overrides its method."""

    attributes: Mapping[Any, Any] = field(default_factory=dict)
    """Attributes for the context of each call."""

    endpoint: Endpoint | None = None
    """The pinned :class:`Endpoint` of the calls to a group."""

    enclosing: EnclosingAttempt | None = field(default=None, repr=False, compare=False)
    """The attempt of a function that the code is part of, if any."""

    blocks: tuple[OptionsBlock, ...] = field(default=(), repr=False, compare=False)
    """The blocks that these were made of, the outermost first."""

    def within(self, outer: Options) -> RequestOptions:
        """Return these options, completed by those of the block around."""
        unset = self.response_timeout is UNSET
        return RequestOptions(
            retry=outer.retry if self.retry is None else self.retry,
            response_timeout=outer.response_timeout if unset else self.response_timeout,
            idempotent=outer.idempotent if self.idempotent is None else self.idempotent,
            attributes={**outer.attributes, **self.attributes},
            endpoint=outer.endpoint if self.endpoint is None else self.endpoint,
            enclosing=self.enclosing or outer.enclosing,
        )


NO_ATTRIBUTES: Final[Mapping[Any, Any]] = MappingProxyType({})


class EnclosingAttempt:
    """An attempt of a function, for the calls that are made in it while it lasts.

    It stands for the options of the code in it, which has none but the attributes.
    Tasks and connections that begin in an attempt keep its context variables, some for
    long. So this refers to the attempt only until it is over.

    Args:
        ctx: The attempt; or the call, where nothing retries.
    """

    __slots__ = ("_attempt", "_captures", "attributes")

    retry: ClassVar[None] = None
    response_timeout: ClassVar[Literal[Unset.UNSET]] = UNSET
    idempotent: ClassVar[None] = None
    endpoint: ClassVar[None] = None
    blocks: ClassVar[tuple[OptionsBlock, ...]] = ()

    attributes: Mapping[Any, Any]

    def __init__(self, ctx: ClientRequestContext) -> None:
        self._attempt: ClientRequestContext | None = ctx
        self._captures = collecting()

    @property
    def enclosing(self) -> Self:
        """The attempt."""
        return self

    def enter(self) -> Token[Options | None]:
        """Leave the blocks around; return what :func:`leave_attempt` needs."""
        around = _options.get()
        self.attributes = NO_ATTRIBUTES if around is None else around.attributes
        return _options.set(self)

    def end(self) -> None:
        """Note that the attempt is over: no further call is part of it."""
        self._attempt, self._captures = None, ()

    def within(self, outer: RequestOptions) -> RequestOptions:
        """Return a copy, with missing options taken from *outer*."""
        attributes = {**outer.attributes, **self.attributes}
        return replace(outer, attributes=attributes, enclosing=self)

    def take(self, call: Call) -> tuple[CaptureBlock, ...]:
        """Let a call that begins be part of the attempt, and end with it.

        Returns:
            The blocks that do not collect its log, because they collect one that has
            it.
        """
        if self._attempt is not None:
            outer, record = self._attempt.call, self._attempt.record
            outer.add_nested_call(record, call)
            deadline = outer.deadline_of(record)
            # The loop of another thread has a clock of its own.
            if deadline is not None and outer.loop is call.loop:
                # A function may go on after its time is up: a call then has none.
                call.cap = max(deadline, call.started)
                call.move_deadline(call.deadline)
        return self._captures


Options: TypeAlias = "RequestOptions | EnclosingAttempt"

_options: ContextVar[Options | None] = ContextVar(
    "aioretry_smithy_options", default=None
)


def leave_attempt(token: Token[Options | None]) -> None:
    """Go back to the blocks around an attempt."""
    try:
        _options.reset(token)
    except ValueError:
        # Another task closes the coroutine, and has nothing to undo.
        return


class OptionsBlock(AbstractContextManager[None]):
    """A block of code with options.

    It does not decorate functions: a decorated coroutine function would leave the block
    before its coroutine runs. It has no state, because several tasks may be in it.
    """

    __slots__ = ("options",)

    def __init__(self, options: RequestOptions) -> None:
        self.options = options

    def __enter__(self) -> None:
        _set_blocks((*_blocks(), self))

    def __exit__(self, *error: object) -> None:
        blocks = _blocks()
        # Another task may close a generator, and has nothing to undo. Or a block that
        # was entered later may end before it.
        if self in blocks:
            last = len(blocks) - 1 - blocks[::-1].index(self)
            _set_blocks(blocks[:last] + blocks[last + 1 :])


class _ReleasableOptions:
    """The options of a block, detachable from connections opened during a request.

    A connection that is opened meanwhile keeps the context variables for as long as it
    lives. So this refers to the options only until then.
    """

    __slots__ = ("_held",)

    def __init__(self, held: Options) -> None:
        self._held = held

    def __getattr__(self, name: str) -> Any:
        return getattr(self._held, name)

    def end(self) -> None:
        """Detach the options: later code sees empty options."""
        self._held = RequestOptions()


async def sending_with(options: Options, send: Callable[[], Awaitable[_T]]) -> _T:
    """Send a request with options that its connections cannot keep alive."""
    held: Any = _ReleasableOptions(options)
    token = _options.set(held)
    try:
        return await send()
    finally:
        held.end()
        leave_attempt(token)


def _blocks() -> tuple[OptionsBlock, ...]:
    around = _options.get()
    return () if around is None else around.blocks


def _set_blocks(blocks: tuple[OptionsBlock, ...]) -> None:
    """Make these the current blocks, the outermost first."""
    around = _options.get()
    merged: Options | None = None if around is None else around.enclosing
    for block in blocks:
        options = block.options if merged is None else block.options.within(merged)
        # Merged once here, not again in each call.
        merged = replace(options, blocks=blocks)
    _options.set(merged)


current_options: Callable[[], Options | None] = _options.get
"""Return the merged options of the current blocks, or None outside of any."""


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

        @property
        def call(self) -> CallContext: ...

    if TYPE_CHECKING:
        holdings: Holdings

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
        return attributes_of(self.call)

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
        """Return a context for another request of the same attempt."""
        other = copy(self)
        other.record, other.attempt = record, record.number - self.call.resends
        other.holdings = None
        return other


def attributes_of(call: Call) -> dict[Any, Any]:
    """Return the attributes of a call, made where it had none."""
    if call.own_attributes is None:
        call.own_attributes = {}
    return call.own_attributes


def apply_options(call: Call, options: Options | None) -> None:
    """Apply the options of the enclosing blocks to a new call.

    Args:
        call: The call.
        options: The options of the blocks around it.
    """
    outside: Collection[CaptureBlock] = ()
    if options is not None:
        call.options = options
        if options.attributes:
            attributes_of(call).update(options.attributes)
        if options.enclosing is not None:
            outside = options.enclosing.take(call)
    for block in collecting():
        if block not in outside:
            block.append(log_of(call, call))
