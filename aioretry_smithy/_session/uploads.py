"""Count the bytes that are sent of a request body."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from aiohttp import ClientRequest, payload

from .._call.record import Upload
from .request_classes import RequestClasses
from .reused_connections import marks_connection

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import aiohttp
    from aiohttp import ClientSession

    from .._call.record import Record, SerializedJson
    from .._request.arguments import Arguments

# Bodies that aiohttp hands to the transport without a wait, if they are not long.
_WHOLE = frozenset(
    {payload.BytesPayload, payload.JsonPayload, payload.StringPayload}
    | {getattr(payload, "JsonBytesPayload", payload.JsonPayload)}  # since 3.14
)
# Half of what aiohttp writes before it waits for the transport.
_ONE_PIECE = 2**15


class Shown(Protocol):
    """A body as recorders and mocks see it."""

    async def prepare(self) -> None:
        """Rewind the body, which recorders may read from its start."""


_last_upload: ContextVar[Upload | None] = ContextVar(
    "aioretry_smithy_upload", default=None
)


def measure_uploads(session: ClientSession) -> type[ClientRequest]:
    """Make the requests of a session count their bytes; return the class before."""
    before: type[ClientRequest] = session._request_class
    session._request_class = measured.of(before)
    return before


def has_body_in(arguments: Arguments) -> bool:
    """Say whether a request with these arguments has a body."""
    if "data" in arguments and arguments["data"] is not None:
        return True
    return "json" in arguments and arguments["json"] is not None


async def sending(
    record: Record,
    json: list[SerializedJson] | None,
    send: Callable[[], Awaitable[aiohttp.ClientResponse]],
    shown: Shown | None = None,
) -> aiohttp.ClientResponse:
    """Send a request, and count its body for the *record*.

    The JSON that is serialized for it is added to *json*. Others see what is *shown*.
    """
    record.upload = upload = open_upload()
    upload.json = json
    upload.shown = shown
    try:
        if shown is not None:
            await shown.prepare()
        return await send()
    finally:
        close_upload(upload)


def current_upload() -> Upload | None:
    """Return the open upload of the request that this task sends, if there is one."""
    upload = _last_upload.get()
    return upload if upload is not None and upload.is_open else None


def open_upload() -> Upload:
    """Make an upload, and let the next body that this task sends be counted there."""
    upload = Upload()
    upload.outer = _last_upload.set(upload).old_value
    return upload


def close_upload(upload: Upload) -> None:
    """Let an upload count nothing more, as its request has ended."""
    writer, outer = upload.writer, upload.outer
    upload.is_open = False
    upload.json = upload.outer = upload.shown = upload.writer = None
    # The transport may have refused the body.
    if writer is not None and not writer._eof:
        upload.length, upload.ended = 0, None
    # The request around counts its body again, if it has not ended.
    if isinstance(outer, Upload) and outer.is_open:
        _last_upload.set(outer)


def _members(kind: type[ClientRequest]) -> dict[str, object]:
    whole = _WHOLE if kind.write_bytes is ClientRequest.write_bytes else ()

    # aiohttp calls this in the task of the request, and may run what it returns in
    # another.
    def write_bytes(self: Any, writer: Any, *arguments: Any) -> Any:
        body, upload = self.body, current_upload()
        # It is also called for a request without a body that waits to be continued.
        if body and upload is not None:
            is_whole = type(body) in whole and body.size <= _ONE_PIECE
            # The server, a compressor in a thread, or a tracer may take its time.
            if not is_whole or self._continue or self.compress or self._traces:
                write = partial(kind.write_bytes, self, writer, *arguments)
                return _counted(write, writer, upload)
            _, limit = arguments
            upload.length = body.size if limit is None else min(limit, body.size)
            upload.ended = asyncio.get_running_loop().time()
            upload.writer = writer
        return kind.write_bytes(self, writer, *arguments)

    send = marks_connection(kind.send)
    return {"write_bytes": write_bytes, "send": send}


measured: Final = RequestClasses(_members)
"""Makes the classes of requests that count."""

# A strong reference: RequestClasses keeps weak ones.
_of_aiohttp = measured.of(ClientRequest)


async def _counted(
    write: Callable[[], Awaitable[None]], writer: Any, upload: Upload
) -> None:
    # A body may make calls of its own, which must not be counted here.
    _last_upload.set(None)
    _count(writer, upload)
    try:
        await write()
    finally:
        del writer.write  # it refers to the writer: no cycle
    if writer._eof:
        upload.ended = asyncio.get_running_loop().time()


def _count(writer: Any, upload: Upload) -> None:
    write = writer.write
    upload.length = length = 0

    async def counted(chunk: Any, *arguments: Any, **options: Any) -> None:
        nonlocal length
        await write(chunk, *arguments, **options)
        length += memoryview(chunk).nbytes
        upload.length = length

    writer.write = counted
