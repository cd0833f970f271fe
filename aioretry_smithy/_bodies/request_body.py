"""Send a request body whole and identical in every attempt, or not at all."""

from __future__ import annotations

import asyncio
import io
import threading
from collections.abc import AsyncIterable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeGuard

import aiohttp
from aiohttp import payload
from aiohttp.multipart import MultipartWriter
from aiohttp.payload import PAYLOAD_REGISTRY, IOBasePayload, Payload
from multidict import MultiDict, MultiDictProxy

from .._call.context import ClientRequestContext, resources_of
from .._errors import UnprocessedRequestError

if TYPE_CHECKING:
    from aiohttp.abc import AbstractStreamWriter

    from .._request.request import HttpRequest

_VALUES = (str, bytes, bytearray, memoryview, int, float, type(None))
# Only these very classes: a user's subclass may behave differently.
_FILES = {
    payload.BufferedReaderPayload,
    payload.BytesIOPayload,
    payload.IOBasePayload,
    payload.TextIOPayload,
}
_IN_MEMORY = {
    payload.BytesPayload,
    getattr(payload, "JsonBytesPayload", None),  # since aiohttp 3.14
    payload.JsonPayload,
    payload.StringIOPayload,
    payload.StringPayload,
}


class SpentBodyError(UnprocessedRequestError):
    """The transport refuses a spent body; another attempt would fail alike."""


def prepare(ctx: ClientRequestContext, data: object) -> object:
    """Return the body to pass to aiohttp for one attempt.

    A body that aiohttp sends alike each time is returned as it is. A factory is called
    for a fresh body. Any other body is wrapped for the whole call: opened once, rewound
    for each attempt, closed at the end, and refused if it cannot be sent whole again.

    Raises:
        SpentBodyError: An earlier attempt of this call has read it.
    """
    if _is_factory(data):
        data = data()
    if _can_be_sent_again(data):
        return data
    body = _find(ctx, data)
    if body is None:
        inner = _payload(data)
        if inner is None:
            return data
        body = ReplayablePayload(data, inner)
        resources = resources_of(ctx)
        resources.bodies = [*resources.bodies, body]
    if body.is_spent:
        message = f"the body was read by an earlier attempt: {type(data).__name__}"
        raise SpentBodyError(message)
    return body


def is_spent(ctx: ClientRequestContext, request: HttpRequest) -> bool:
    """Say whether sending *request* once more would be refused."""
    body = _find(ctx, request.arguments.get("data"))
    return body is not None and body.is_spent


def can_be_sent_at_once(data: object) -> bool:
    """Say whether two requests can send a body at the same time: it is in memory."""
    if type(data) in _IN_MEMORY:
        return True
    return not isinstance(data, AsyncIterable) and _can_be_sent_again(data)


def bytes_in_memory(
    data: object,
) -> tuple[bytes | bytearray | memoryview, str] | None:
    """Return a body that is bytes, with the Content-Type that aiohttp gives it."""
    if isinstance(data, bytes | bytearray | memoryview):
        return data, "application/octet-stream"
    if type(data) in _IN_MEMORY and isinstance(data, payload.BytesPayload):
        return data._value, data.content_type
    return None


def form_pairs(data: object) -> list[tuple[Any, Any]] | None:
    """Return the fields of a body that aiohttp sends urlencoded, None of any other."""
    if isinstance(data, aiohttp.FormData):
        if data.is_multipart:
            return None
        return [(options["name"], value) for options, _, value in data._fields]
    if isinstance(data, dict | MultiDict | MultiDictProxy):
        return list(data.items())
    if isinstance(data, list | tuple) and all(
        isinstance(pair, list | tuple) and len(pair) == 2 for pair in data
    ):
        return [(name, value) for name, value in data]
    return None


def form_charset(data: object) -> str:
    """Return the charset in which aiohttp encodes the fields of a form."""
    return (isinstance(data, aiohttp.FormData) and data._charset) or "utf-8"


class ReplayablePayload(Payload):
    """A payload that several attempts of a call can send.

    aiohttp closes a payload after sending it, and reads files in threads that go on
    when an attempt is cancelled. This one is closed after the last attempt, and waits
    for such a read before it rewinds.
    """

    def __init__(self, source: object, inner: Payload) -> None:
        super().__init__(inner, headers=inner.headers)
        self.source = source
        self._inner = inner
        self._files = [_SerialFile(part) for part in _parts(inner) if _is_file(part)]
        self._is_started = False
        self._is_to_be_closed = False

    @property
    def is_spent(self) -> bool:
        """Whether it was read and cannot be read from its start again."""
        return any(_is_used_up(part, self._is_started) for part in _parts(self._inner))

    @property
    def size(self) -> int | None:
        """The length in bytes, or None if only reading tells."""
        return self._inner.size

    @property
    def consumed(self) -> bool:
        """Whether aiohttp must not send it again, after a redirect for instance."""
        return any(
            part.consumed or (_is_used_up(part, self._is_started) and _is_known(part))
            for part in _parts(self._inner)
        )

    @property
    def autoclose(self) -> bool:
        """Whether there is nothing to close."""
        return self._inner.autoclose

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        """Return the body as text, for a middleware that looks at it."""
        return self._inner.decode(encoding, errors)

    async def as_bytes(self, encoding: str = "utf-8", errors: str = "strict") -> bytes:
        """Return the body as bytes, for a middleware that signs it."""
        self.start()
        return await self._inner.as_bytes(encoding, errors)

    async def write(self, writer: AbstractStreamWriter) -> None:
        """Send the body from its start."""
        await self.write_with_length(writer, None)

    async def write_with_length(
        self, writer: AbstractStreamWriter, content_length: int | None
    ) -> None:
        """Send the body from its start, at most *content_length* bytes of it."""
        if self.consumed:
            message = f"the body was read before: {type(self.source).__name__}"
            raise SpentBodyError(message)
        self.start()
        for file in self._files:
            await file.wait_for_reads()
        await self._inner.write_with_length(writer, content_length)

    def start(self) -> None:
        """Note that reading begins."""
        self._is_started = True

    async def close(self) -> None:
        """Note that aiohttp wants it closed; the next attempt may still need it."""
        self._is_to_be_closed = True

    async def end(self) -> None:
        """Close it if aiohttp would have."""
        for file in self._files:
            file.restore()
        if self._is_to_be_closed:
            await self._inner.close()


class _SerialFile:
    """Wraps the file of a payload, to wait for reads that run in a thread."""

    def __init__(self, part: IOBasePayload) -> None:
        self._part = part
        self._file: Any = part._value
        self._reading = threading.Lock()
        part._value = self  # type: ignore[assignment]

    def read(self, size: int = -1) -> Any:
        with self._reading:
            return self._file.read(size)

    async def wait_for_reads(self) -> None:
        if self._reading.locked():
            await asyncio.get_running_loop().run_in_executor(None, self._wait)

    def restore(self) -> None:
        self._part._value = self._file

    def _wait(self) -> None:
        with self._reading:
            pass

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def _is_factory(data: object) -> TypeGuard[Callable[[], object]]:
    if not callable(data) or isinstance(
        data, aiohttp.FormData | Payload | io.IOBase | AsyncIterable | type
    ):
        return False
    try:
        # A stream made by aiohttp's own decorator can be called, but is a body.
        PAYLOAD_REGISTRY.get(data)
    except payload.LookupError:
        return True
    return False


def _can_be_sent_again(data: object) -> bool:
    if isinstance(data, _VALUES):
        return True
    if isinstance(data, aiohttp.FormData):
        # A multipart form makes one writer, which counts as consumed once closed.
        return not data.is_multipart
    if isinstance(data, Mapping):
        data = list(data.items())
    if isinstance(data, list | tuple):
        return all(
            isinstance(pair, list | tuple) and isinstance(pair[-1], _VALUES)
            for pair in data
            if pair
        )
    # Each call of aiter() has to read from the start. aiohttp's reader returns a new
    # iterator each time too, but all of them read the same stream.
    return (
        isinstance(data, AsyncIterable)
        and not isinstance(data, aiohttp.StreamReader | Payload)
        and aiter(data) is not data
    )


def _payload(data: Any) -> Payload | None:
    """Make the payload that aiohttp would make, or None if it would raise."""
    if isinstance(data, aiohttp.FormData):
        data = data()
    try:
        return PAYLOAD_REGISTRY.get(data, disposition=None)
    except payload.LookupError:
        pass
    try:
        return aiohttp.FormData(data)()
    except (TypeError, ValueError):
        return None


def _find(ctx: ClientRequestContext, data: object) -> ReplayablePayload | None:
    resources = (ctx.parent or ctx)._resources
    bodies: Any = () if resources is None else resources.bodies
    return next((body for body in bodies if body.source is data), None)


def _parts(body: Payload) -> list[Payload]:
    # One by one: before 3.14 aiohttp's writer does not know which parts were consumed.
    if type(body) is not MultipartWriter:
        return [body]
    return [part for each, _, _ in body._parts for part in _parts(each)]


def _is_file(part: Payload) -> TypeGuard[IOBasePayload]:
    return type(part) in _FILES


def _is_known(part: Payload) -> bool:
    # Within one attempt a user's payload class is believed, as in aiohttp alone.
    return _is_file(part) or isinstance(part, payload.AsyncIterablePayload)


def _is_used_up(part: Payload, is_started: bool) -> bool:
    if _is_file(part):
        return part.consumed or (is_started and not part._value.seekable())
    return is_started and type(part) not in _IN_MEMORY
