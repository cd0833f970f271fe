"""A server with one file, which breaks off, lies and stalls as it is told."""

from __future__ import annotations

import asyncio
import socket
import struct
from dataclasses import dataclass, field

import aiohttp
import pytest
from chains import SAFELY, connected, retrying
from stream_server import StreamServer

from aioretry_smithy import RequestLog, ResumingClient

LINGER = struct.pack("ii", 1, 0)
FILE = b"".join(b"line %05d\n" % number for number in range(2_000))
TAG = '"v1"'
REASONS = {200: "OK", 206: "Partial Content", 416: "Range Not Satisfiable"}

RESUMING = ResumingClient.new_decorator()
RETRYING = retrying(SAFELY)
HOLD = object()
"""In place of an end of the connection: no further byte comes."""


@dataclass
class Asked:
    """A request as it came."""

    head: str
    headers: dict[str, str] = field(init=False)

    def __post_init__(self):
        lines = [line.partition(":") for line in self.head.split("\r\n")[1:] if line]
        self.headers = {name.lower(): value.strip() for name, _, value in lines}

    @property
    def start(self):
        """The position of the first byte that is asked for."""
        found = self.headers.get("range", "bytes=0-")
        return int(found.removeprefix("bytes=").removesuffix("-"))


@dataclass
class Answer:
    """What is sent for one request.

    Args:
        stop: Where to break off, a position in the file; None to send all of it.
        status: The status; unless given 200 or 206, as was asked.
        changes: Headers in place of the usual ones; None leaves one out.
        end: What comes after it: None closes the connection, True keeps it, an
            exception resets it; or ``HOLD``.
        body: The file.
        chunk: The size of HTTP chunks; 0 for a length instead.
        size: The length of the pieces that are written.
        wait: Awaited before the headers.
        pause: Seconds after them.
        also: More header lines.
    """

    stop: int | None = None
    status: int | None = None
    changes: dict[str, str | None] = field(default_factory=dict)
    end: object = None
    body: bytes = FILE
    chunk: int = 0
    size: int = 4096
    wait: asyncio.Event | None = None
    pause: float = 0.0
    also: tuple[str, ...] = ()

    def head(self, asked):
        """Write the headers."""
        start, total = asked.start, len(self.body)
        status = self.status or (206 if "range" in asked.headers else 200)
        headers = {"ETag": TAG}
        if self.chunk:
            headers["Transfer-Encoding"] = "chunked"
        else:
            headers["Content-Length"] = str(max(0, total - start))
        if status == 206:
            headers["Content-Range"] = f"bytes {start}-{total - 1}/{total}"
        headers |= self.changes
        lines = [f"HTTP/1.1 {status} {REASONS.get(status, 'Status')}"]
        lines += [f"{name}: {value}" for name, value in headers.items() if value]
        return "\r\n".join([*lines, *self.also, "", ""]).encode()

    def pieces(self, asked):
        """Yield the body as it goes over the wire."""
        data = self.body[asked.start : self.stop]
        size = self.chunk or self.size
        for at in range(0, len(data), size):
            piece = data[at : at + size]
            yield b"%x\r\n%b\r\n" % (len(piece), piece) if self.chunk else piece
        if self.chunk and self.stop is None:
            yield b"0\r\n\r\n"


class DownloadServer:
    """Answers requests in turn, the last answer again and again.

    Args:
        answers: The answers, or functions that make one of what was asked.
    """

    def __init__(self, *answers):
        self.answers = [*answers]
        self.asked = []
        self.sent = 0
        self._changed = asyncio.Event()
        self._server = StreamServer(self._serve)

    async def __aenter__(self):
        await self._server.__aenter__()
        self.origin = self._server.url(path="")
        self.url = f"{self.origin}/file"
        return self

    async def __aexit__(self, *error):
        await self._server.__aexit__(*error)

    async def _serve(self, reader, writer):
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            asked = Asked(head.decode())
            self.asked.append(asked)
            self._changed.set()
            made = self.answers.pop(0) if self.answers[1:] else self.answers[0]
            answer = made if isinstance(made, Answer) else made(asked)
            if not await self._write(writer, asked, answer):
                break

    async def _write(self, writer, asked, answer):
        if answer.wait is not None:
            await answer.wait.wait()
        writer.write(answer.head(asked))
        if answer.pause:
            await writer.drain()
            await asyncio.sleep(answer.pause)
        for piece in answer.pieces(asked):
            writer.write(piece)
            self.sent += len(piece)
            self._changed.set()
            await writer.drain()
        if answer.end is HOLD:
            await asyncio.Event().wait()
        if answer.end is ConnectionResetError:
            # What is under way would be lost.
            await asyncio.sleep(0.05)
            connection = writer.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER)
            writer.transport.abort()
            return False
        return answer.end is True

    def stop_listening(self):
        """Take no further connection."""
        self._server.stop_listening()

    async def until(self, *, sent=0, asked=0):
        """Wait until so many bytes were sent, and so many requests have come."""
        while self.sent < sent or len(self.asked) < asked:
            self._changed.clear()
            await self._changed.wait()

    @property
    def ranges(self):
        """What was asked for each time."""
        return [asked.headers.get("range") for asked in self.asked]


def broken_at(*positions, end=None, **settings):
    """Make the answers of a connection that breaks there, before it holds."""
    answers = [Answer(stop=position, end=end, **settings) for position in positions]
    return [*answers, Answer(end=True, **settings)]


TIMES = {
    "ETag": None,
    "Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT",
    "Date": "Sun, 06 Nov 1994 08:50:37 GMT",
}


async def download(url, *decorators, read=None, options=None, **settings):
    """Read a body whole; return it with the log of its call."""
    async with connected(None, *decorators, **settings) as session:
        async with session.get(url, **(options or {})) as response:
            body = await (response.read() if read is None else read(response))
        return body, RequestLog.of(response)


async def failure(url, *decorators, **settings):
    """Read as much of a body as comes; return that, the failure and the log."""
    got = bytearray()
    async with connected(None, *decorators, **settings) as session:
        async with session.get(url) as response:
            with pytest.raises((aiohttp.ClientError, TimeoutError)) as error:
                await gather(response, got)
        return bytes(got), error.value, RequestLog.of(response)


async def gather(response, got):
    async for piece in response.content.iter_any():
        got += piece


async def text(response):
    return (await response.text()).encode()
