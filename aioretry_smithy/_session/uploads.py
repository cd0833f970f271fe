"""Measure what is sent of a body; a request without one is not touched."""

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

_sending: ContextVar[Upload | None] = ContextVar(
    "aioretry_smithy_sending", default=None
)


def measure_uploads(session: ClientSession) -> type[ClientRequest]:
    """Let the requests of a session count what they send of a body.

    Returns:
        The class that they had before.
    """
    before: Any = session._request_class
    # A mock, or a function that makes requests, stays as it is.
    if isinstance(before, type):
        session._request_class = _measured(before)
    return before  # type: ignore[no-any-return]


async def sending(
    upload: Upload,
    json: JsonOnce,
    answer: Awaitable[aiohttp.ClientResponse],
) -> aiohttp.ClientResponse:
    """Send a request with a body, and let it be counted."""
    token = _sending.set(upload)
    try:
        return await answer
    finally:
        _sending.reset(token)
        json.sending = None


@cache
def _measured(kind: Any) -> Any:
    # aiohttp has no other place that is met by a request with a body, and only by one.
    async def write_bytes(
        self: Any, writer: Any, *arguments: Any, **options: Any
    ) -> None:
        upload = _sending.get()
        if upload is None:
            await kind.write_bytes(self, writer, *arguments, **options)
            return
        # A body that makes calls of its own must not have them counted here.
        _sending.set(None)
        _count(writer, upload)
        try:
            await kind.write_bytes(self, writer, *arguments, **options)
        finally:
            # It has the writer.
            del writer.write
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
