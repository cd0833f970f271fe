"""Measure what is sent of a body; a request without one is not touched."""

from __future__ import annotations

from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import aiohttp
    from aiohttp import ClientRequest, ClientSession

    from .._log.request_log import RequestLog
    from .json_once import JsonOnce

_sending: ContextVar[RequestLog | None] = ContextVar(
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
    log: RequestLog,
    json: JsonOnce,
    send: Callable[[], Awaitable[aiohttp.ClientResponse]],
) -> aiohttp.ClientResponse:
    """Send a request with a body, which *log* is to tell of."""
    # Until the request counts: that of a mock does not.
    log._request_length = None
    token = _sending.set(log)
    try:
        return await send()
    finally:
        _sending.reset(token)
        json.sending = None


@cache
def _measured(kind: Any) -> Any:
    # aiohttp has no other place that is met by a request with a body, and only by one.
    async def write_bytes(
        self: Any, writer: Any, *arguments: Any, **options: Any
    ) -> None:
        log = _sending.get()
        if log is None:
            await kind.write_bytes(self, writer, *arguments, **options)
            return
        # A body that makes calls of its own must not have them counted here.
        _sending.set(None)
        _count(writer, log)
        try:
            await kind.write_bytes(self, writer, *arguments, **options)
        finally:
            # It has the writer.
            del writer.write
        if writer._eof:
            log._request_ended = log._call.loop.time()

    members = {"write_bytes": write_bytes, "__module__": kind.__module__}
    return type(kind)(kind.__name__, (kind,), members)


def _count(writer: Any, log: RequestLog) -> None:
    write, length = writer.write, 0
    log._request_length = 0

    async def counted(chunk: Any, *arguments: Any, **options: Any) -> None:
        nonlocal length
        await write(chunk, *arguments, **options)
        length += memoryview(chunk).nbytes
        log._request_length = length

    writer.write = counted
