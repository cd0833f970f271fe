"""Change settings for the calls in a block of code."""

from __future__ import annotations

from abc import ABC, abstractmethod
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

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping

    from .._request.endpoint import Endpoint

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
    """The :class:`Endpoint` that calls go to, of the group that has it."""

    enclosing: AttemptOptions | None = field(default=None, repr=False, compare=False)
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


class AttemptOptions(ABC):
    """The options of the code of an attempt of a function: none but the attributes.

    Made for each attempt, so it is the attempt too, for the calls made inside.
    """

    __slots__ = ("attributes",)

    retry: ClassVar[None] = None
    response_timeout: ClassVar[Literal[Unset.UNSET]] = UNSET
    idempotent: ClassVar[None] = None
    endpoint: ClassVar[None] = None
    blocks: ClassVar[tuple[OptionsBlock, ...]] = ()

    attributes: Mapping[Any, Any]

    @property
    def enclosing(self) -> Self:
        """The attempt."""
        return self

    def enter(self) -> Token[Options | None]:
        """Leave the blocks around; return what :func:`leave_attempt` needs."""
        around = _options.get()
        self.attributes = NO_ATTRIBUTES if around is None else around.attributes
        return _options.set(self)

    def within(self, outer: RequestOptions) -> RequestOptions:
        """Return these options, completed by *outer* ones."""
        attributes = {**outer.attributes, **self.attributes}
        return replace(outer, attributes=attributes, enclosing=self)

    @abstractmethod
    def take(self, call: Any) -> Collection[Any]:
        """Let a call that begins be part of the attempt, while that lasts.

        Returns:
            The blocks that do not collect its log, because they collect one that has
            it.
        """


Options: TypeAlias = "RequestOptions | AttemptOptions"

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


class _LentOptions:
    """The options of a block, for the code that runs while a request is sent.

    A connection that is opened meanwhile keeps the context variables for as long as it
    lives. So this refers to the options only until then.
    """

    __slots__ = ("_lent",)

    def __init__(self, lent: Options) -> None:
        self._lent = lent

    def __getattr__(self, name: str) -> Any:
        return getattr(self._lent, name)

    def end(self) -> None:
        """Change nothing any more."""
        self._lent = RequestOptions()


async def lending(options: Options, send: Callable[[], Awaitable[_T]]) -> _T:
    """Send a request, and let no connection that it opens keep the options."""
    lent: Any = _LentOptions(options)
    token = _options.set(lent)
    try:
        return await send()
    finally:
        lent.end()
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
