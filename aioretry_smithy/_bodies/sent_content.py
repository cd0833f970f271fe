"""Compare what is sent of a body with what went out of it before."""

from __future__ import annotations

from typing import TYPE_CHECKING
from zlib import crc32

from .._errors import UnprocessedRequestError
from .._failures.failure import judge

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from aiohttp.abc import AbstractStreamWriter


class SpentBodyError(UnprocessedRequestError):
    """The transport refuses a spent body; another attempt would fail alike."""


class SentContent:
    """The length and the checksum of a body as it went out, for later sends to equal.

    Of one that never went out whole, they are those of its longest beginning.

    Args:
        name: What errors call the body.
    """

    __slots__ = ("_announced", "_name", "checksum", "is_whole", "length", "refusal")

    length: int
    """The bytes that went out."""

    checksum: int
    """Their CRC-32."""

    is_whole: bool
    """Whether the bytes that went out were the whole body."""

    refusal: SpentBodyError | None
    """The error by which another send was refused, if one was."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._announced: int | None = None
        self.length = self.checksum = 0
        self.is_whole = False
        self.refusal = None

    def expect(self, size: int | None) -> None:
        """Compare the length that a body announces, before anything of it is sent.

        Raises:
            SpentBodyError: It is another one.
        """
        if not (self.length or self.is_whole):
            self._announced = size
            return
        known = (
            self.length
            if self._announced is None and self.is_whole
            else self._announced
        )
        if size is not None and known is not None and size != known:
            raise self.refuse("has another length than before")

    def expect_at_most(self, limit: int) -> None:
        """Compare the number of bytes after which a server takes the body for whole.

        Raises:
            SpentBodyError: It is another one, or more went out before.
        """
        if limit < self.length or (self.is_whole and limit != self.length):
            raise self.refuse("has another length than before")

    def refuse(self, words: str, *, was_seen: bool = False) -> SpentBodyError:
        """Make the error for what cannot be sent again, or no further.

        Args:
            words: What the body does or was done to it.
            was_seen: Whether a server has seen something of the request.
        """
        self.refusal = error = SpentBodyError(f"the body {words}: {self._name}")
        if was_seen:
            judge(error).reached_server = True
        return error

    def forget_refusal(self) -> None:
        """Let go of the error, whose frames may have what has this."""
        self.refusal = None


class ComparingWriter:
    """Stands before aiohttp's writer of a body, and lets out what equals earlier sends.

    What differs is not written, and so the request does not become whole.

    Args:
        writer: The writer.
        before: What went out before; what goes out now is noted there.
    """

    def __init__(self, writer: AbstractStreamWriter, before: SentContent) -> None:
        self._writer = writer
        self._write: Callable[..., Awaitable[None]] = writer.write
        self._before = before
        self._length = self._checksum = 0

    async def write(
        self, chunk: bytes | bytearray | memoryview, *flow: bool, **options: int
    ) -> None:
        """Write the next bytes.

        Raises:
            SpentBodyError: They are others than before.
        """
        self._compare(
            chunk if isinstance(chunk, bytes) else memoryview(chunk).tobytes()
        )
        await self._write(chunk, *flow, **options)

    def end(self) -> None:
        """Note that the body has ended.

        Raises:
            SpentBodyError: It ended later before.
        """
        if self._length < self._before.length:
            raise self._refuse("ends earlier than before")
        self.note()
        self._before.is_whole = True

    def note(self) -> None:
        """Note what went out, which may be the beginning of a body."""
        before = self._before
        if before.refusal is None and self._length > before.length:
            before.length, before.checksum = self._length, self._checksum

    def _compare(self, chunk: bytes) -> None:
        before, begin, end = self._before, self._length, self._length + len(chunk)
        if before.is_whole and end > before.length:
            raise self._refuse("goes on longer than before")
        if begin < before.length <= end:
            head = chunk[: before.length - begin]
            if crc32(head, self._checksum) != before.checksum:
                raise self._refuse("differs from what was sent before")
        self._length, self._checksum = end, crc32(chunk, self._checksum)

    def _refuse(self, words: str) -> SpentBodyError:
        return self._before.refuse(words, was_seen=self._length > 0)

    def __getattr__(self, name: str) -> object:
        return getattr(self._writer, name)
