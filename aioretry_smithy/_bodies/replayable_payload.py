"""Wrap a payload for several attempts, and compare the bytes that they send."""

from __future__ import annotations

import asyncio
import copy
import inspect
import threading
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeAlias, TypeGuard, TypeVar
from zlib import crc32

from aiohttp import payload
from aiohttp.multipart import MultipartWriter
from aiohttp.payload import AsyncIterablePayload, IOBasePayload, Payload

from .._errors import UnprocessedRequestError
from .._failures.failure import judge
from .._request.arguments import copy_of_buffer

if TYPE_CHECKING:
    from aiohttp.abc import AbstractStreamWriter
    from multidict import CIMultiDict


class SpentBodyError(UnprocessedRequestError):
    """The transport refuses a spent body; another attempt would fail alike."""


class SentContent:
    """The length and the checksum of a body as it went out, for later sends to match.

    Of one that never went out whole, they are those of its longest beginning.
    """

    __slots__ = ("_announced", "_name", "checksum", "is_whole", "length", "refusal")

    length: int
    """The bytes that went out."""

    checksum: int
    """The CRC-32 of the bytes."""

    is_whole: bool
    """Whether the bytes that went out were the whole body."""

    refusal: SpentBodyError | None
    """The error that refused a second send, if there was a second send."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._announced: int | None = None
        self.length = self.checksum = 0
        self.is_whole = False
        self.refusal = None

    def expect(self, size: int | None) -> None:
        """Check the announced length of a body before sending."""
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
        """Compare the number of bytes that a server regards as the whole body."""
        if limit < self.length or (self.is_whole and limit != self.length):
            raise self.refuse("has another length than before")

    def refuse(self, words: str, *, was_seen: bool = False) -> SpentBodyError:
        """Make the error for a body that cannot be sent again, or no further."""
        self.refusal = error = SpentBodyError(f"the body {words}: {self._name}")
        if was_seen:
            judge(error).reached_server = True
        return error

    def forget_refusal(self) -> None:
        """Drop the stored error: its frames would be a reference cycle."""
        self.refusal = None


class ComparingWriter:
    """Wraps aiohttp's writer of a body, and passes on only what equals earlier sends.

    What differs is not written, and so the request does not become whole.
    """

    def __init__(self, writer: AbstractStreamWriter, before: SentContent) -> None:
        self._writer = writer
        self._write: Callable[..., Awaitable[None]] = writer.write
        self._before = before
        self._length = self._checksum = 0

    async def write(
        self, chunk: bytes | bytearray | memoryview, *flow: bool, **options: int
    ) -> None:
        """Write the next bytes."""
        self._compare(
            chunk if isinstance(chunk, bytes) else memoryview(chunk).tobytes()
        )
        await self._write(chunk, *flow, **options)

    def end(self) -> None:
        """Note that the body has ended."""
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
    """

    can_rewind = True
    """Whether each rewind of the file reached the recorded position."""

    def __init__(self, given: AsyncIterablePayload) -> None:
        # Not by the class between, which would ask for another iterator.
        Payload.__init__(self, given._value, headers=given.headers)
        self._given = given
        self._start: int | None = None
        self._operation: asyncio.Future[Any] | None = None

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
        """Cancel the file operation under way, if any."""
        if self._operation is not None:
            self._operation.cancel()

    async def _do(self, operation: Awaitable[_T]) -> _T:
        """Await a file operation; a cancelled operation completes in the background."""
        self._operation = begun = asyncio.ensure_future(operation)
        begun.add_done_callback(_retrieve)
        await asyncio.wait([begun])
        return begun.result()


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


def _retrieve(operation: asyncio.Future[_T]) -> None:
    """Retrieve the exception of an abandoned operation, against warnings."""
    if not operation.cancelled():
        operation.exception()


# Only these very classes: a user's subclass may behave differently.
_FILES = {
    payload.BufferedReaderPayload,
    payload.BytesIOPayload,
    payload.IOBasePayload,
    payload.TextIOPayload,
}
IN_MEMORY = {
    payload.BytesPayload,
    getattr(payload, "JsonBytesPayload", None),  # since aiohttp 3.14
    payload.JsonPayload,
    payload.StringIOPayload,
    payload.StringPayload,
}
"""The classes of payloads with all bytes in memory."""


Shape: TypeAlias = "tuple[CIMultiDict[str], list[tuple[bytes, CIMultiDict[str]]]]"
"""The headers of a body; and the boundary and the headers of each multipart in it."""


class ReplayablePayload(Payload):
    """A payload that several attempts of a call can send.

    aiohttp closes a payload after sending it, and reads files in threads that go on
    when an attempt is cancelled. This one is closed after the last attempt, and waits
    for such a read before it rewinds. What is not in memory may have changed meanwhile:
    it is compared with what went out before.
    """

    def __init__(
        self,
        source: object,
        given: Payload,
        sent: SentContent | None = None,
        *,
        start: int | None = None,
    ) -> None:
        super().__init__(
            given,
            headers=given.headers,
            filename=given.filename,
            encoding=given.encoding,
        )
        self.source: Any = source
        self._start = start
        self._given = given
        self._inner = inner = _fixed(given)
        self._files = [_SerialFile(part) for part in _parts(inner) if _is_file(part)]
        self._async_files = [
            part for part in _parts(inner) if isinstance(part, AsyncFilePayload)
        ]
        self.may_differ = sent is not None or not all(map(_is_fixed, _parts(inner)))
        self.sent = sent or SentContent(type(source).__name__)
        self._sending = asyncio.Lock()
        self._is_started = self._is_released = False
        self._was_sent = self._is_over = False
        self._is_to_be_closed = False
        self._first_size: int | None = None

    @property
    def shape(self) -> Shape:
        """The headers and the multipart boundaries of the body."""
        writers = _writers(self._inner)
        of_writers = [(each._boundary, each.headers.copy()) for each in writers]
        return self.headers.copy(), of_writers

    def take_shape(self, shape: Shape) -> None:
        """Take the headers and boundaries of an earlier send of the same body."""
        headers, of_writers = shape
        _exchange(self.headers, headers)
        for own, other in zip(_writers(self._inner), of_writers, strict=False):
            own._boundary = other[0]
            _exchange(own.headers, other[1])

    @property
    def is_spent(self) -> bool:
        """Whether the body was consumed and cannot be rewound."""
        return self.sent.refusal is not None or any(
            _is_used_up(part, self._is_started or self._is_released)
            for part in _parts(self._inner)
        )

    async def release_source(self) -> None:
        """Rewind the source, and release it to readers outside."""
        async with self._sending:
            await self._rewind()
            for file in self._files:
                file.rewind()
            if self._start is not None and not self.source.closed:
                self.source.seek(self._start)
        self._is_released = True

    def reclaim_source(self) -> None:
        """Return to sending the source directly, and to counting the bytes read."""
        self._is_released = False

    def body_of(self, data: object) -> ReplayablePayload | None:
        """Return the payload if *data* is the source of it."""
        return self if self.source is data else None

    @property
    def size(self) -> int | None:
        """The original length in bytes; None if unknown before reading."""
        if self._first_size is None:
            self._first_size = self._inner.size
        return self._first_size

    @property
    def consumed(self) -> bool:
        """Whether aiohttp must not send the body again, such as after a redirect."""
        return any(
            part.consumed or (_is_used_up(part, self._is_started) and _is_known(part))
            for part in _parts(self._inner)
        )

    @property
    def autoclose(self) -> bool:
        """Whether aiohttp may skip closing the payload."""
        return self._is_to_be_closed or self._inner.autoclose

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        """Return the body as text, for middlewares."""
        text = self._inner.decode(encoding, errors)
        # What has no file is in memory, or refuses.
        self._is_started |= bool(self._files)
        return text

    async def as_bytes(self, encoding: str = "utf-8", errors: str = "strict") -> bytes:
        """Return the body as bytes, for a middleware that signs requests."""
        async with self._sending:
            await self._rewind()
            self.start()
            return await self._inner.as_bytes(encoding, errors)

    async def write(self, writer: AbstractStreamWriter) -> None:
        """Send the body from its start."""
        await self.write_with_length(writer, None)

    async def write_with_length(
        self, writer: AbstractStreamWriter, content_length: int | None
    ) -> None:
        """Send the body from its start, at most *content_length* bytes of it.

        Who sends it a second time meanwhile waits for the end of the first. What is in
        memory can go out several times at once.
        """
        if not self.may_differ:
            self.start()
            await self._inner.write_with_length(writer, content_length)
            return
        async with self._sending:
            comparing: Any = ComparingWriter(writer, self.sent)
            try:
                await self._rewind()
                self.start()
                self._was_sent = True
                if content_length is not None:
                    self.sent.expect_at_most(content_length)
                await self._inner.write_with_length(comparing, content_length)
                comparing.end()
            finally:
                comparing.note()
                if self._is_over:
                    self._stop_reading()

    async def _rewind(self) -> None:
        for file in self._files:
            await file.wait_for_reads()
        for part in self._async_files:
            await part.rewind()

    def start(self) -> None:
        """Note the beginning of the reading."""
        if self.consumed:
            raise self.sent.refuse("was read before", was_seen=self._was_sent)
        self._is_started = True

    def _close(self) -> None:
        """Defer the close wanted by aiohttp: the next attempt may need the body."""
        self._is_to_be_closed = True

    async def end(self) -> None:
        """Close the body if aiohttp wanted to close it."""
        self.sent.forget_refusal()
        self._is_over = True
        if not self._sending.locked():
            # Else a server has answered early, and aiohttp goes on sending.
            self._stop_reading()
        for file in self._files:
            file.restore()
        if self._is_to_be_closed:
            await self._given.close()

    def _stop_reading(self) -> None:
        for part in self._async_files:
            part.end()


class _SerialFile:
    """Wraps the file of a payload, to wait for reads that run in a thread."""

    def __init__(self, part: IOBasePayload) -> None:
        self._part = part
        self._file = part._value
        self._reading = threading.Lock()
        part._value = self  # type: ignore[assignment]

    def read(self, size: int = -1) -> object:
        with self._reading:
            return self._file.read(size)

    async def wait_for_reads(self) -> None:
        if self._reading.locked():
            await asyncio.get_running_loop().run_in_executor(None, self._wait)

    def rewind(self) -> None:
        if not self._file.closed and self._file.seekable():
            self._part._set_or_restore_start_position()

    def restore(self) -> None:
        self._part._value = self._file

    def _wait(self) -> None:
        with self._reading:
            pass

    def __getattr__(self, name: str) -> object:
        return getattr(self._file, name)

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[object, ...]:
        # A recorder may copy a form, which has this meanwhile.
        return self._file.__reduce_ex__(protocol)


def _fixed(body: Payload) -> Payload:
    """Return a payload of the same files, with a snapshot of data in memory."""
    if type(body) is MultipartWriter:
        fixed: Any = copy.copy(body)
        fixed._parts = [(_fixed(part), *encodings) for part, *encodings in body._parts]
    elif type(body) in IN_MEMORY:
        fixed = copy.copy(body)
        fixed._value = copy_of_buffer(body._value)
    elif type(body) is payload.AsyncIterablePayload and is_async_file(body._value):
        return AsyncFilePayload(body)
    else:
        return body
    fixed._headers = body.headers.copy()
    return fixed  # type: ignore[no-any-return]


def _parts(body: Payload) -> list[Payload]:
    # One by one: before 3.14 aiohttp's writer does not know which parts were consumed.
    if type(body) is not MultipartWriter:
        return [body]
    return [part for each, _, _ in body._parts for part in _parts(each)]


def _writers(body: Payload) -> list[MultipartWriter]:
    if type(body) is not MultipartWriter:
        return []
    return [body, *(own for part, _, _ in body._parts for own in _writers(part))]


def _exchange(headers: CIMultiDict[str], others: CIMultiDict[str]) -> None:
    headers.clear()
    headers.extend(others)


def _is_fixed(part: Payload) -> bool:
    return type(part) in IN_MEMORY


def _is_file(part: Payload) -> TypeGuard[IOBasePayload]:
    return type(part) in _FILES


def _is_known(part: Payload) -> bool:
    # Within one attempt a user's payload class is believed, as in aiohttp alone.
    return _is_file(part) or isinstance(part, payload.AsyncIterablePayload)


def _is_used_up(part: Payload, is_started: bool) -> bool:
    if _is_file(part):
        file = part._value
        return part.consumed or (is_started and (file.closed or not file.seekable()))
    if getattr(part, "_cached_chunks", None) is not None:
        # A middleware has looked at it, and aiohttp has kept what it saw.
        return False
    if isinstance(part, AsyncFilePayload):
        return is_started and not part.can_rewind
    return is_started and not _is_fixed(part)
