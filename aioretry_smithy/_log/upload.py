"""Count what is sent of the body of a request."""

from __future__ import annotations

from typing import Any, Final


class Upload:
    """The bytes of a body that were sent, and when the last one was.

    Args:
        length: The bytes so far; None where nobody counts, as with a mock.
    """

    __slots__ = ("ended", "length", "notes", "outer")

    ended: float | None
    """When the last byte was sent, by the event loop's clock."""

    notes: list[Any] | None
    """What was given as JSON, each with what makes its body again."""

    outer: Upload | None
    """The upload that was under way when this one began, if any."""

    def __init__(self, length: int | None = None) -> None:
        self.length = length
        self.ended = self.notes = self.outer = None


NO_BODY: Final = Upload(0)
"""That of requests without a body. Nothing is written into it."""
