"""Count the bytes that are sent of a request body."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable

    import aiohttp
    from aiohttp import ClientRequest, ClientSession

    from .._log.upload import Upload
    from .json_once import JsonOnce

_last_upload: ContextVar[Upload | None] = ContextVar(
    "aioretry_smithy_upload", default=None
)


def measure_uploads(session: ClientSession) -> type[ClientRequest]:
    """Make the requests of a session count their bytes; return the class before."""
    before: Any = session._request_class
    # A mock or a function instead of a class stays as it is.
    if isinstance(before, type):
        session._request_class = _measured(before)
    return before  # type: ignore[no-any-return]


def has_body_in(arguments: dict[str, Any]) -> bool:
    """Say whether a request with these arguments has a body."""
    return arguments.get("data") is not None or arguments.get("json") is not None


async def sending(
    upload: Upload,
    json: JsonOnce,
    answer: Awaitable[aiohttp.ClientResponse],
) -> aiohttp.ClientResponse:
    """Send a request with a body, and let it be counted."""
    begin_sending(upload)
    try:
        return await answer
    finally:
        end_sending(upload, json)


def begin_sending(upload: Upload) -> None:
    """Let the request that is sent next count its body."""
    upload.outer = _last_upload.get()
    _last_upload.set(upload)


def end_sending(upload: Upload, json: JsonOnce) -> None:
    """Let a request around this one, if there is one, count its body again."""
    json.sending = None
    upload.is_over = True
    outer, upload.outer = upload.outer, None
    # One that is over is not in the way: each request with a body sets its own.
    if outer is not None and not outer.is_over:
        _last_upload.set(outer)


@cache
def _measured(kind: Any) -> Any:
    # aiohttp calls this method for requests with a body, and only for these.
    async def write_bytes(
        self: Any, writer: Any, *arguments: Any, **options: Any
    ) -> None:
        upload = _last_upload.get()
        if upload is None:
            await kind.write_bytes(self, writer, *arguments, **options)
            return
        # A body may make calls of its own, which must not be counted here.
        _last_upload.set(None)
        _count(writer, upload)
        try:
            await kind.write_bytes(self, writer, *arguments, **options)
        finally:
            del writer.write  # it refers to the writer: no cycle
        if writer._eof:
            upload.ended = asyncio.get_running_loop().time()

    members = {"write_bytes": write_bytes, "__module__": kind.__module__}
    return type(kind)(kind.__name__, (kind,), members)


def _count(writer: Any, upload: Upload) -> None:
    write = writer.write
    upload.length = length = 0

    async def counted(chunk: Any, *arguments: Any, **options: Any) -> None:
        nonlocal length
        await write(chunk, *arguments, **options)
        length += memoryview(chunk).nbytes
        upload.length = length

    writer.write = counted
