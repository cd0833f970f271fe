"""Settings for the calls that are made in a block of code."""

from __future__ import annotations

from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Unset(Enum):
    """Stands for what was not said, where None says something."""

    UNSET = "UNSET"


UNSET: Final = Unset.UNSET


@dataclass(frozen=True, slots=True)
class RequestOptions:
    """The settings of a block of code; those that it does not name stay as they are."""

    retry: Any = None
    """A :class:`RetryConfig` in place of what the retrying client was made with."""

    response_timeout: float | Literal[Unset.UNSET] | None = UNSET
    """Seconds that a call may take; None for no limit."""

    idempotent: bool | None = None
    """Whether the server may see a request twice, whatever its method."""

    attributes: Mapping[Any, Any] = field(default_factory=dict)
    """What the context of each call gets."""

    def within(self, outer: RequestOptions) -> RequestOptions:
        """Return these options, completed by those of the block around."""
        unset = self.response_timeout is UNSET
        return RequestOptions(
            retry=outer.retry if self.retry is None else self.retry,
            response_timeout=outer.response_timeout if unset else self.response_timeout,
            idempotent=outer.idempotent if self.idempotent is None else self.idempotent,
            attributes={**outer.attributes, **self.attributes},
        )


_options: ContextVar[RequestOptions | None] = ContextVar(
    "aioretry_smithy_options", default=None
)


class OptionsBlock(AbstractContextManager[None]):
    """A block of code with options.

    It decorates no function: that of a coroutine is over before anything happens. The
    object knows nothing of those that are in the block, since there may be many.
    """

    __slots__ = ("options",)

    def __init__(self, options: RequestOptions) -> None:
        self.options = options

    def __enter__(self) -> None:
        _stay_in((*_blocks.get(), self))

    def __exit__(self, *error: object) -> None:
        blocks = _blocks.get()
        # A generator may be closed by another task, where there is nothing to undo,
        # and later than a block that was entered after its own.
        if self in blocks:
            last = len(blocks) - 1 - blocks[::-1].index(self)
            _stay_in(blocks[:last] + blocks[last + 1 :])


_blocks: ContextVar[tuple[OptionsBlock, ...]] = ContextVar(
    "aioretry_smithy_blocks", default=()
)


def _stay_in(blocks: tuple[OptionsBlock, ...]) -> None:
    """Let these blocks, the outermost first, be the ones around what comes next."""
    merged: RequestOptions | None = None
    for block in blocks:
        merged = block.options if merged is None else block.options.within(merged)
    _blocks.set(blocks)
    # Merged here, once, and not by each call.
    _options.set(merged)


current_options: Callable[[], RequestOptions | None] = _options.get
"""Returns what the blocks around say, or None outside of any; asked by each call."""
