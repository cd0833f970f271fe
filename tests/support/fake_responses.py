"""Responses whose bodies come as a test wants them, and a place to send bodies to."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import aiohttp
from aiohttp.client_proto import ResponseHandler

from aioretry_smithy import new_response


class FakeTimer:
    def __init__(self, fired=False):
        self.fired = fired

    def assert_timeout(self):
        if self.fired:
            raise TimeoutError


class FakeConnection:
    def __init__(self):
        self.callbacks = []

    def add_callback(self, callback):
        self.callbacks.append(callback)

    def give_back(self):
        for callback in self.callbacks:
            callback()


class FakeStream:
    """A body of many chunks that come at intervals."""

    def __init__(self, chunks=0, size=0, interval=0.0, error=None):
        self.chunks, self.size, self.interval = chunks, size, interval
        self.error = error
        self._timer = FakeTimer()
        self.total_bytes = 0

    def at_eof(self):
        return not self.chunks

    is_eof = at_eof

    def exception(self):
        return self.error

    async def readany(self):
        await asyncio.sleep(self.interval)
        if self.error is not None:
            raise self.error
        self.chunks -= 1
        self.total_bytes += self.size
        return b""


class FakeResponse:
    """The part of a response that is asked, without a network."""

    def __init__(self, stream, *, status=200, length=None):
        self.content, self.status, self.content_length = stream, status, length
        self.connection = FakeConnection()
        self.headers, self.reason, self.history = {}, "OK", ()
        self.request_info = SimpleNamespace(headers={})
        self.calls = []

    def release(self):
        self.calls.append("release")

    def close(self):
        self.calls.append("close")


class Connected(ResponseHandler):
    """Pretends to have a connection, for a stream that is to wait for more."""

    connected = True


def unending(request, status=200, *, headers=None, start=b""):
    """Make a response whose body begins so, and hangs."""
    loop = asyncio.get_running_loop()
    response = new_response(request, status, headers=headers)
    response.content = aiohttp.StreamReader(Connected(loop), 2**16, loop=loop)
    response.content.feed_data(start)
    return response


class Sink:
    """A stream writer that keeps what it is given."""

    def __init__(self) -> None:
        self.sent = b""

    async def write(self, chunk: bytes) -> None:
        self.sent += chunk
