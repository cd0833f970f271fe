"""A server that records the bytes of each request, and answers by the path."""

import asyncio
import base64
import contextlib
import hashlib
import re
import zlib

from fault_server import response
from stream_server import StreamServer
from yarl import URL

LIMIT = 1 << 20
RANDOM = re.compile(
    rb"""boundary="?(?P<boundary>[0-9a-f]{32})|Sec-WebSocket-Key: (?P<key>\S+)"""
)
"""Bytes that aiohttp makes up anew for each request."""


class Wire:
    """All bytes that came over the connections of one or more servers, in order.

    The next ``failures`` requests are answered 503.
    """

    def __init__(self):
        self.failures = 0
        self.connections = []
        self._tapes = []

    def record(self, connection, head):
        """Note a request, and return what its body is to be added to."""
        tape = bytearray(head)
        self._tapes.append((connection, tape))
        return tape

    async def take(self):
        """Return what came, by connection, when all of the connections have ended."""
        if self.connections:
            # A client that has closed its session is as good as gone.
            _, left = await asyncio.wait(self.connections, timeout=5.0)
            assert not left
        self.connections.clear()
        taken = [(number, _settled(bytes(tape))) for number, tape in self._tapes]
        self._tapes.clear()
        return taken


class WireServer:
    """A server on loopback, and a proxy, as an async context manager."""

    def __init__(self, wire, tls=None):
        self._wire = wire
        self._scheme = "http" if tls is None else "https"
        self._server = StreamServer(self._serve, ssl=tls, limit=LIMIT)

    async def __aenter__(self):
        await self._server.__aenter__()
        self.url = URL(self._server.url(self._scheme, ""))
        return self

    async def __aexit__(self, *exc_info):
        await self._wire.take()
        await self._server.__aexit__(*exc_info)

    async def _serve(self, reader, writer):
        task = asyncio.current_task()
        self._wire.connections.append(task)
        number = len(self._wire.connections)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while await self._adapter(number, reader, writer):
                pass
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()

    async def _adapter(self, number, reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        tape = self._wire.record(number, head)
        method, target, _ = head.partition(b"\r\n")[0].decode().split(" ", 2)
        if method == "CONNECT":
            await _relay(target, reader, writer)
            return False
        if b"expect: 100-continue" in head.lower():
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        await _read_body(head, reader, tape)
        if self._wire.failures:
            self._wire.failures -= 1
            sent, kept = response(503, b"try again" if method != "HEAD" else b""), True
        else:
            sent, kept = answer(method, URL(target).parts[1:], head)
        writer.write(sent)
        await writer.drain()
        if sent.startswith(b"HTTP/1.1 101"):
            await reader.read()
        return kept


def answer(method, parts, head):
    """Return the bytes of the answer, and whether the connection stays open."""
    name, *rest = parts or ("",)
    status = 200
    if name == "ws":
        return switch(head), False
    if name == "redirect":
        status, left = int(rest[0]), int(rest[1]) - 1
        where = f"/redirect/{status}/{left}" if left else "/landed"
        sent, kept = response(status, b"moved", f"Location: {where}"), True
    elif name == "status":
        status = int(rest[0])
        sent, kept = response(status, b"status"), True
    else:
        sent, kept = ANSWERS.get(name, (response(200, b"fine"), True))
    if method == "HEAD" or status in {204, 304}:
        sent = sent.partition(b"\r\n\r\n")[0] + b"\r\n\r\n"
    return sent, kept


ANSWERS = {
    "cookies": (
        response(
            200, b"", "Set-Cookie: a=1; Path=/", "Set-Cookie: b=2; Path=/; HttpOnly"
        ),
        True,
    ),
    "cookies-then": (
        response(302, b"", "Set-Cookie: hop=1; Path=/", "Location: /cookies"),
        True,
    ),
    "gzip": (
        # gzip.compress() writes another header on 3.13 than on 3.11.
        response(200, zlib.compress(b"fine" * 99, wbits=31), "Content-Encoding: gzip"),
        True,
    ),
    "bad-gzip": (response(200, b"no gzip", "Content-Encoding: gzip"), True),
    "json": (response(200, b'{"a": 1}', "Content-Type: application/json"), True),
    "latin": (
        response(200, b"\xfc", "Content-Type: text/plain; charset=latin-1"),
        True,
    ),
    "large": (response(200, b"0123456789" * 30_000), True),
    "chunked": (
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-A: 1\r\nx-a: 2\r\n"
            b"\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
        ),
        True,
    ),
    "eof": (b"HTTP/1.1 200 OK\r\n\r\nto the end", False),
    "closing": (response(200, b"last", "Connection: close"), False),
    "ancient": (b"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nold", False),
    "long-header": (response(200, b"", f"X-Long: {'x' * 9000}"), True),
    "many-headers": (response(200, b"", *(f"X-{i}: 1" for i in range(200))), True),
    "truncated": (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort", False),
    "garbage": (b"this is no HTTP\r\n\r\n", False),
    "drop": (b"", False),
    "to-ftp": (response(302, b"", "Location: ftp://127.0.0.1/"), True),
    "to-nonsense": (response(302, b"", "Location: http://["), True),
    "to-nowhere": (response(302, b"stay"), True),
    # What comes next is the end of the client.
    "hang": (b"", True),
}
"""By the first part of the path: the answer, and whether the connection is kept."""


def switch(head):
    """Accept a websocket; say hello, and goodbye."""
    found = re.search(rb"sec-websocket-key: (\S+)", head, re.IGNORECASE)
    key = found[1] if found else b""
    accept = base64.b64encode(
        hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()
    )
    lines = b"HTTP/1.1 101 Go\r\nUpgrade: websocket\r\nConnection: upgrade\r\n"
    frames = b"\x81\x05hello\x88\x02\x03\xe8"
    return lines + b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n" + frames


async def _read_body(head, reader, tape):
    lower = head.lower()
    if b"transfer-encoding: chunked" in lower:
        size = -1
        while size:
            line = await reader.readuntil(b"\r\n")
            tape += line
            size = int(line, 16)
            tape += await reader.readexactly(size + 2)
    elif found := re.search(rb"content-length: (\d+)", lower):
        missing = int(found[1])
        while missing and (data := await reader.read(missing)):
            tape += data
            missing -= len(data)


async def _relay(target, reader, writer):
    host, _, port = target.rpartition(":")
    far_reader, far_writer = await asyncio.open_connection(host, int(port))
    writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
    async with asyncio.TaskGroup() as both:
        both.create_task(_copy(far_reader, writer))
        both.create_task(_copy(reader, far_writer))


async def _copy(reader, writer):
    with contextlib.suppress(OSError):
        while data := await reader.read(LIMIT):
            writer.write(data)
    writer.close()


def _settled(data):
    for found in RANDOM.finditer(data.partition(b"\r\n\r\n")[0]):
        for name, value in found.groupdict().items():
            if value is not None:
                data = data.replace(value, f"<{name}>".encode())
    return data
