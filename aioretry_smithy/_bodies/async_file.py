"""Send a file of aiofiles or anyio more than once."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterable, Awaitable
from typing import TYPE_CHECKING, Any, TypeVar

from aiohttp.payload import AsyncIterablePayload, Payload

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

_T = TypeVar("_T")


def is_async_file(value: object) -> bool:
    """Say whether something is iterated like a file whose methods are awaited.

    Its class says so: an object around a file may let its methods through.
    """
    kind = type(value)
    return isinstance(value, AsyncIterable) and all(
        inspect.iscoroutinefunction(getattr(kind, name, None))
        for name in ("seek", "tell")
    )


class AsyncFilePayload(AsyncIterablePayload):
    """A file whose methods are awaited, which can be rewound.

    It reads in threads that go on when a send is cancelled. To rewind waits for such a
    read.

    Args:
        given: The payload that aiohttp made of it.
    """

    can_rewind = True
    """Whether the file has told its position, and gone back there each time."""

    def __init__(self, given: AsyncIterablePayload) -> None:
        # Not by the class between, which would ask for another iterator.
        Payload.__init__(self, given._value, headers=given.headers)
        self._given = given
        self._start: int | None = None
        self._operation: asyncio.Task[Any] | None = None

    @property
    def consumed(self) -> bool:
        """Whether aiohttp must not send the file; never, as each send rewinds it."""
        return False

    async def rewind(self) -> None:
        """Go to the position that the file had at first."""
        if self._cached_chunks is not None:
            return
        file: Any = self._value
        if self._operation is not None:
            await asyncio.wait([self._operation])
        first, self._given._iter = self._given._iter, None
        try:
            if self._start is None:
                self._start = await self._do(file.tell())
            else:
                await self._do(file.seek(self._start))
        except (OSError, ValueError) as cause:
            # Closed since it was sent; one that was closed before says so itself.
            if self._start is None and not isinstance(cause, OSError):
                raise
            self.can_rewind = False
        self._iter = _Pieces(self._do, first or aiter(file))

    def end(self) -> None:
        """Let go of what is still read."""
        if self._operation is not None:
            self._operation.cancel()

    async def _do(self, operation: Awaitable[_T]) -> _T:
        """Await something of the file, which goes on if this is cancelled."""
        self._operation = task = asyncio.create_task(_awaited(operation))
        task.add_done_callback(_retrieve)
        await asyncio.wait([task])
        return task.result()


class _Pieces:
    """Iterates over a file, one operation at a time."""

    def __init__(
        self,
        do: Callable[[Awaitable[bytes]], Awaitable[bytes]],
        pieces: AsyncIterator[bytes],
    ) -> None:
        self._do = do
        self._pieces = pieces

    def __aiter__(self) -> _Pieces:
        return self

    async def __anext__(self) -> bytes:
        return await self._do(anext(self._pieces))


async def _awaited(operation: Awaitable[_T]) -> _T:
    return await operation


def _retrieve(task: asyncio.Task[_T]) -> None:
    """Look at a failure that nobody waits for any more."""
    if not task.cancelled():
        task.exception()
