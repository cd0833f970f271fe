"""Keep the calls that were made inside an attempt."""

from __future__ import annotations

from typing import Any, Final

_MOST_CALLS: Final = 100


class CallsInside:
    """The first calls, in order, and the number of the others."""

    __slots__ = ("dropped", "kept")

    dropped: int
    """How many more there were than are kept."""

    def __init__(self) -> None:
        self.kept: list[Any] = []
        self.dropped = 0

    def add(self, call: Any) -> None:
        """Keep a call that begins, or count it."""
        if len(self.kept) < _MOST_CALLS:
            self.kept.append(call)
        else:
            self.dropped += 1
