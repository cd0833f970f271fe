"""Count the bytes of a request body that are sent."""

from __future__ import annotations

from typing import Any, Final


class Upload:
    """The bytes of a body that were sent, and when the last one was."""

    __slots__ = ("ended", "is_open", "length", "outer", "writer")

    length: int | None
    """The bytes so far; None where no body was sent to count, as with a mock."""

    ended: float | None
    """When the last byte was sent, by the event loop's clock."""

    is_open: bool
    """Whether its request is being sent; an open upload counts the next body."""

    outer: Upload | None
    """The open upload of a request around this one, while this one is open."""

    writer: Any
    """aiohttp's writer of a body that leaves in one piece, while the upload is open."""

    def __init__(self, length: int | None = None, *, is_open: bool = True) -> None:
        self.length = length
        self.ended = None
        self.is_open = is_open
        self.outer = self.writer = None


NO_BODY: Final = Upload(0, is_open=False)
"""The upload of requests without a body. Nothing is written into it."""
