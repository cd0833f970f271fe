"""Count the bytes of a request body that are sent, and keep the text of its JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiohttp.payload import Payload

SerializedJson: TypeAlias = "tuple[object, Callable[..., Payload], str | bytes]"
"""An object given as JSON, the class that aiohttp makes its body of, and its text."""


class Upload:
    """Counts the bytes of a request body that are sent, and keeps its JSON."""

    __slots__ = ("ended", "is_open", "json", "length", "outer", "shown", "writer")

    length: int | None
    """The bytes so far; None where no body was sent to count, as with a mock."""

    ended: float | None
    """When the last byte was sent, by the event loop's clock."""

    is_open: bool
    """Whether its request is being sent; an open upload counts the next body."""

    json: list[SerializedJson] | None
    """The JSON that was serialized for it, while it is open."""

    outer: object
    """What the context variable held before: an upload or none; None once closed."""

    shown: Any
    """The body as others see it, while the upload is open; None if the same."""

    writer: Any
    """aiohttp's writer of a body that leaves in one piece, while the upload is open."""

    def __init__(self, length: int | None = None, *, is_open: bool = True) -> None:
        self.length = length
        self.is_open = is_open
        self.ended = self.json = self.outer = self.shown = self.writer = None


NO_BODY: Final = Upload(0, is_open=False)
"""The upload of requests without a body. Nothing is written into it."""
