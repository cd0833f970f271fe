"""Responses whose bodies come as a test wants, and requests that go nowhere."""

from __future__ import annotations

import asyncio
import math
from types import SimpleNamespace
from typing import NamedTuple

import aiohttp
from aiohttp import ClientSession, ClientTimeout
from aiohttp.client_proto import ResponseHandler
from chains import connected, retrying
from yarl import URL

from aioretry_smithy import (
    Backoff,
    HttpRequest,
    RetryStrategyWithContent,
    SessionBuilder,
    client_decorator,
    new_response,
)


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

    def __init__(self):
        self.sent = b""

    async def write(self, chunk):
        self.sent += chunk


SOON = Backoff.fixed(0.01)
NUMBERS = [b'"%06d"' % n for n in range(20_000)]
LINES = [b", ".join(NUMBERS[n : n + 10]) for n in range(0, 20_000, 10)]
BODY = b"[" + b",\n".join(LINES) + b"]"
"""JSON in 2000 lines, 200 KB: more than a stream holds before it stops reading."""
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


class WhileBusy(RetryStrategyWithContent):
    """Keeps what it was shown; retries failures, and bodies that begin so."""

    def __init__(self, max_content_length=1024):
        self.max_content_length = max_content_length
        self.seen = []

    def should_retry(self, ctx, cause, content):
        self.seen.append((ctx.log.response_status, cause, content))
        return SOON if content is None or content.startswith(b"busy") else None


def sized(body, *headers):
    """Write a response whose body has a length."""
    length = b"Content-Length: %d" % len(body)
    return HEAD + b"\r\n".join([length, *headers]) + b"\r\n\r\n" + body


def chunk(data):
    """Write an HTTP chunk."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def chunked(pieces, *headers):
    """Write a response whose body comes in chunks."""
    lines = [b"Transfer-Encoding: chunked", *headers]
    head = HEAD + b"\r\n".join(lines) + b"\r\n\r\n"
    return head + b"".join(map(chunk, pieces)) + b"0\r\n\r\n"


def pieces_of(data, size):
    return [data[start : start + size] for start in range(0, len(data), size)]


async def joined(iterator):
    return b"".join([part async for part in iterator])


async def in_reads(content):
    parts = [b"1"]
    while parts[-1]:
        parts.append(await content.read(1000))
    return b"".join(parts[1:])


WAYS = {
    "read": lambda response: response.read(),
    "text": lambda response: response.text(),
    "json": lambda response: response.json(),
    "content.read": lambda response: response.content.read(),
    "content.read(n)": lambda response: in_reads(response.content),
    "readexactly": lambda response: response.content.readexactly(len(BODY)),
    "iter_chunked": lambda response: joined(response.content.iter_chunked(3000)),
    "iter_any": lambda response: joined(response.content.iter_any()),
    "lines": lambda response: joined(response.content),
}


def build(url, strategy, *, attempts=10, limit=None, buffer=False, **options):
    """Build a session with settings of retries, and options of its own."""
    return connected(
        url,
        retrying(
            strategy,
            max_total_attempts=attempts,
            attempt_timeout=limit,
            buffer_response=buffer,
        ),
        **options,
    )


def assert_nothing_is_held(session):
    assert not session.connector._acquired


class Call(NamedTuple):
    """One call of ``ClientSession._request``."""

    at: float
    method: str
    url: object
    options: dict


class Recorder:
    """Stands in for ``ClientSession._request`` and answers from a list."""

    def __init__(self):
        self.calls = []
        self.answers = []
        self.takes = 0.0

    async def __call__(self, session, method, url, **options):
        loop = asyncio.get_running_loop()
        self.calls.append(Call(loop.time(), method, url, options))
        await asyncio.sleep(self.takes)
        answer = self.answers.pop(0) if self.answers else 200
        if isinstance(answer, BaseException):
            raise answer
        return new_response(HttpRequest(method, URL(url)), answer)

    @property
    def options(self):
        return [call.options for call in self.calls]

    @property
    def timeouts(self):
        return [options.get("timeout") for options in self.options]


def sent_to(answer, monkeypatch):
    """Call *answer* in place of ``ClientSession._request``; return it."""

    async def _request(session, method, url, **options):
        return await answer(session, method, url, **options)

    monkeypatch.setattr(ClientSession, "_request", _request)
    return answer


def pausing(seconds):
    """Make a decorator that waits before it sends."""

    @client_decorator
    async def pause(delegate, ctx, request):
        await asyncio.sleep(seconds)
        return await delegate.execute(ctx, request)

    return pause


def changing(change):
    """Make a decorator that changes the context, or the request by returning one."""

    @client_decorator
    async def decorator(delegate, ctx, request):
        return await delegate.execute(ctx, change(ctx, request) or request)

    return decorator


async def get(*decorators, session_timeout=None, **options):
    """Make one call that ends at the recorder."""
    arguments = {} if session_timeout is None else {"timeout": session_timeout}
    builder = SessionBuilder("http://h", **arguments)
    for decorator in decorators:
        builder.decorator(decorator)
    async with builder.build() as session:
        return await session.request("GET", "/", **options)


def exact(total, **limits):
    """Return a timeout as attempts get it, which aiohttp does not round up."""
    return ClientTimeout(total=total, ceil_threshold=math.inf, **limits)
