"""Bodies that can be read once, as users write them around streams."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any

CHUNK = 1 << 16


async def pieces(content: bytes, size: int = CHUNK) -> AsyncIterator[bytes]:
    """Yield a content piece by piece."""
    for start in range(0, len(content), size):
        yield content[start : start + size]


class Progress:
    """Tells how much of a stream has gone; each ``aiter()`` makes another iterator."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.passed = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._stream:
            self.passed += len(piece)
            yield piece


class Once:
    """May be iterated once, and says so."""

    def __init__(self, content: Iterable[bytes]) -> None:
        self._content = content
        self.asked = 0

    def __aiter__(self) -> AsyncIterator[bytes]:
        self.asked += 1
        if self.asked > 1:
            message = "it was iterated before"
            raise RuntimeError(message)
        return self._pieces()

    async def _pieces(self) -> AsyncIterator[bytes]:
        for piece in self._content:
            yield piece
