"""Change settings for the calls in a block of code."""

from __future__ import annotations

from contextlib import AbstractContextManager, suppress
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Unset(Enum):
    """Marks an argument that is left out, where None has a meaning."""

    UNSET = "UNSET"


UNSET: Final = Unset.UNSET


@dataclass(frozen=True, slots=True)
class RequestOptions:
    """The settings of a block of code; those that are left out change nothing."""

    retry: Any = None
    """A :class:`RetryConfig` in place of the retrying client's."""

    response_timeout: float | Literal[Unset.UNSET] | None = UNSET
    """Seconds that a call may take; None for no limit."""

    idempotent: bool | None = None
    """Whether the server may see a request twice; overrides its method."""

    attributes: Mapping[Any, Any] = field(default_factory=dict)
    """Attributes for the context of each call."""

    enclosing: Any = field(default=None, repr=False, compare=False)
    """The :class:`EnclosingAttempt` of a function that the code is part of, if any."""

    def within(self, outer: RequestOptions) -> RequestOptions:
        """Return these options, completed by those of the block around."""
        unset = self.response_timeout is UNSET
        return RequestOptions(
            retry=outer.retry if self.retry is None else self.retry,
            response_timeout=outer.response_timeout if unset else self.response_timeout,
            idempotent=outer.idempotent if self.idempotent is None else self.idempotent,
            attributes={**outer.attributes, **self.attributes},
            enclosing=outer.enclosing if self.enclosing is None else self.enclosing,
        )


_options: ContextVar[RequestOptions | None] = ContextVar(
    "aioretry_smithy_options", default=None
)


class OptionsBlock(AbstractContextManager[None]):
    """A block of code with options.

    It does not decorate functions: a decorated coroutine function would leave the block
    before its coroutine runs. It has no state, because several tasks may be in it.
    """

    __slots__ = ("options",)

    def __init__(self, options: RequestOptions) -> None:
        self.options = options

    def __enter__(self) -> None:
        _set_blocks((*_blocks.get(), self))

    def __exit__(self, *error: object) -> None:
        blocks = _blocks.get()
        # Another task may close a generator, and has nothing to undo. Or a block that
        # was entered later may end before it.
        if self in blocks:
            last = len(blocks) - 1 - blocks[::-1].index(self)
            _set_blocks(blocks[:last] + blocks[last + 1 :])


_blocks: ContextVar[tuple[OptionsBlock, ...]] = ContextVar(
    "aioretry_smithy_blocks", default=()
)


def _set_blocks(blocks: tuple[OptionsBlock, ...]) -> None:
    """Make these the current blocks, the outermost first."""
    merged: RequestOptions | None = None
    for block in blocks:
        merged = block.options if merged is None else block.options.within(merged)
    _blocks.set(blocks)
    # Merged once here, not again in each call.
    _options.set(merged)


_Entered: TypeAlias = "tuple[Token[Any], Token[Any]]"


def enter_attempt(enclosing: object) -> _Entered:
    """Leave the settings around for the code of an attempt, and keep the attributes.

    Returns:
        What :func:`leave_attempt` needs.
    """
    around = _options.get()
    attributes = {} if around is None else around.attributes
    options = RequestOptions(attributes=attributes, enclosing=enclosing)
    return _blocks.set((OptionsBlock(options),)), _options.set(options)


def leave_attempt(entered: _Entered) -> None:
    """Go back to the settings around an attempt."""
    blocks, options = entered
    # Another task may close the coroutine, and has nothing to undo.
    with suppress(ValueError):
        _blocks.reset(blocks)
        _options.reset(options)


current_options: Callable[[], RequestOptions | None] = _options.get
"""Return the merged options of the current blocks, or None outside of any."""
