"""Hold the options of blocks of code, and of the attempts that code runs in."""

from __future__ import annotations

from contextlib import AbstractContextManager
from contextvars import ContextVar, Token
from dataclasses import dataclass, field, replace
from enum import Enum
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

from .._log.request_log import CaptureBlock, collecting, log_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping

    from .._call.call import Call
    from .._request.endpoint import Endpoint
    from .context import ClientRequestContext


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
            call.attributes.update(options.attributes)
        if options.enclosing is not None:
            outside = options.enclosing.take(call)
    for block in collecting():
        if block not in outside:
            block.append(log_of(call, call))
