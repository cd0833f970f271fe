"""A server that fails as it is told, byte by byte, and counts what it was sent."""

from __future__ import annotations

import asyncio
import contextlib
import enum
import errno
import os
import socket
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field

import pytest
from yarl import URL

RECEIVE = 1 << 18
HEAD_SIZE = 1 << 12
RECEIVE_BUFFER = 1 << 16
"""Bytes that the kernel takes in while nobody reads: much less than the bodies sent."""

LINGER = struct.pack("ii", 1, 0)
PATIENCE = 2.0
"""Seconds after which the server stops waiting for what has to happen."""

UNREAD = 0.2
"""Seconds that a body stays unread, unless the client asks again before."""


class Read(enum.Enum):
    """How much of a request is read before the answer."""

    WHOLE = "all of it"
    HEAD = "its headers"


class End(enum.Enum):
    """The end of the connection after the answer."""

    KEEP = "kept alive"
    CLOSE = "closed"
    RESET = "reset"
    STALL = "held, without another byte"


def response(status=200, body=b"", *headers):
    """Write a response with a length, as the bytes that go over the wire."""
    lines = [f"HTTP/1.1 {status} Status", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


OK = response()


@dataclass(frozen=True)
class Fault:
    """The fate of one request.

    ``read`` is a number of bytes of the request, or how much of it in words; ``send``
    are bytes, and between them seconds to wait, or an event.
    """

    read: Read | int = Read.WHOLE
    send: Iterable[bytes | float | asyncio.Event] = (OK,)
    end: End = End.KEEP


def answer(status=200, body=b"", *headers):
    """Read all of the request, then answer."""
    return Fault(send=(response(status, body, *headers),))


def early(status=503, body=b""):
    """Answer before any of the body is read."""
    return Fault(Read.HEAD, (response(status, body),))


def cut(sent=b"", *, read=Read.WHOLE, end):
    """Break off after that many bytes of the request and these of the response."""
    return Fault(read, (sent,), end)


class Received:
    """One request as far as it came; its place is 1 for the first of a connection."""

    def __init__(self, connection, place=1):
        self.connection = connection
        self.place = place
        self.head = b""
        self.body = bytearray()
        self.is_whole = False
        self.bytes_read = 0
        self._pending = bytearray()
        self._missing = None

    def feed(self, data):
        """Take in what came next."""
        self.bytes_read += len(data)
        self._pending += data
        if not self.head:
            head, found, rest = self._pending.partition(b"\r\n\r\n")
            if not found:
                return
            self.head = bytes(head)
            self._pending = rest
            if b"chunked" not in self.header("Transfer-Encoding"):
                self._missing = int(self.header("Content-Length") or 0)
        if self._missing is None:
            self._decode_chunks()
        else:
            self._missing -= len(self._pending)
            self.body += self._pending
            self._pending.clear()
            self.is_whole = self._missing == 0

    def _decode_chunks(self):
        while not self.is_whole:
            start = self._pending.find(b"\r\n") + 2
            if start < 2:
                return
            size = int(self._pending[: start - 2], 16)
            if len(self._pending) < start + size + 2:
                return
            self.body += self._pending[start : start + size]
            del self._pending[: start + size + 2]
            self.is_whole = size == 0

    def header(self, name):
        """Return the value of a header, empty where there is none."""
        for line in self.head.split(b"\r\n")[1:]:
            key, _, value = line.partition(b":")
            if key.lower() == name.lower().encode():
                return value.strip()
        return b""

    @property
    def method(self):
        """The method, as far as it came."""
        return self.head.partition(b" ")[0].decode()

    @property
    def target(self):
        """What was asked for, once the headers are there."""
        return self.head.split(b" ", 2)[1].decode()


@dataclass
class FaultServer:
    """A server on loopback, as an async context manager.

    The faults meet the requests in the order in which these begin, on whatever
    connection; what comes later meets ``then``. ``connections`` decides, in the same
    way, about connections before anything is read from them.
    """

    faults: Iterable[Fault] = ()
    then: Fault = Fault()
    connections: Iterable[End] = ()
    requests: list[Received] = field(default_factory=list, init=False)
    connected: int = field(default=0, init=False)

    @property
    def processed(self):
        """The side effects: how many requests were received whole."""
        return sum(request.is_whole for request in self.requests)

    @property
    def bodies(self):
        """The bodies of the requests that were received whole."""
        return [bytes(request.body) for request in self.requests if request.is_whole]

    @property
    def url(self):
        """Where it listens."""
        host, port = self._listener.getsockname()
        return URL.build(scheme="http", host=host, port=port)

    async def asked(self):
        """Wait until a request has begun."""
        while not self.requests:
            await self._news.wait()

    async def __aenter__(self):
        self._faults = iter(self.faults)
        self._fates = iter(self.connections)
        self._closing = asyncio.Event()
        self._news = asyncio.Event()
        self._served = set()
        self._last = None
        self._listen(0)
        return self

    def _listen(self, port):
        self._listener = bound("127.0.0.1", port)
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
        self._take_connections()

    def _take_connections(self):
        self._listener.listen(1024)
        self._accepting = asyncio.create_task(self._accept())

    async def __aexit__(self, *exc_info):
        self._closing.set()
        self._announce()
        await self._stop_accepting()
        if self._served:
            await asyncio.wait(self._served, timeout=PATIENCE)
        for task in self._served:
            task.cancel()
        ended = await asyncio.gather(*self._served, return_exceptions=True)
        for error in ended:
            if isinstance(error, Exception):
                raise error

    async def _stop_accepting(self):
        """Stop listening, when all connections that clients have made are here.

        A task that is cancelled may lose the one that it has just accepted. One of our
        own comes after all others.
        """
        with socket.socket() as last:
            last.setblocking(False)
            last.connect_ex(self._listener.getsockname())
            self._last = last.getsockname()
            await self._accepting
        self._listener.close()

    async def _accept(self):
        loop = asyncio.get_running_loop()
        while True:
            connection, client = await loop.sock_accept(self._listener)
            if client == self._last:
                connection.close()
                return
            connection.setblocking(False)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.connected += 1
            task = asyncio.create_task(self._serve(connection, self.connected))
            self._served.add(task)
            task.add_done_callback(self._forget)

    def _forget(self, task):
        # What failed is kept, and raised at the end.
        if not task.cancelled() and task.exception() is None:
            self._served.discard(task)

    async def _serve(self, connection, number):
        place = 0
        try:
            kept = await self._end(connection, next(self._fates, End.KEEP))
            while kept:
                place += 1
                kept = await self._adapter(connection, Received(number, place))
        except OSError:
            pass  # the client went away
        finally:
            connection.close()

    async def _adapter(self, connection, request):
        """Deal with one request; return whether the connection can have another."""
        if not await self._receive(connection, request, 1):
            return False
        self.requests.append(request)
        self._announce()
        fault = await self._fault_for(connection, request)
        await self._read(connection, request, fault.read)
        for part in fault.send:
            if isinstance(part, bytes):
                await asyncio.get_running_loop().sock_sendall(connection, part)
            elif isinstance(part, asyncio.Event):
                await part.wait()
            else:
                await self._wait(self._closing, part)
        kept = await self._end(connection, fault.end)
        if kept and not request.is_whole:
            # A body that nobody reads: until the client has given it up.
            await self._wait(self._news, UNREAD)
            await self._read(connection, request, Read.WHOLE)
        return kept and request.is_whole

    async def _fault_for(self, connection, request):
        return next(self._faults, self.then)

    async def _read(self, connection, request, extent):
        while not request.is_whole:
            size = RECEIVE
            if extent is Read.HEAD:
                size = 0 if request.head else HEAD_SIZE
            elif isinstance(extent, int):
                size = min(RECEIVE, extent - request.bytes_read)
            if size <= 0 or not await self._receive(connection, request, size):
                return

    async def _receive(self, connection, request, size):
        data = await asyncio.get_running_loop().sock_recv(connection, size)
        request.feed(data)
        return bool(data)

    async def _end(self, connection, end):
        if end is End.KEEP:
            return True
        if end is End.STALL:
            await self._closing.wait()
        elif end is End.RESET:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER)
        else:
            await self._hang_up(connection)
        return False

    async def _hang_up(self, connection):
        # To close with bytes unread would be a reset.
        connection.shutdown(socket.SHUT_WR)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                while await asyncio.get_running_loop().sock_recv(connection, RECEIVE):
                    pass

    def _announce(self):
        self._news.set()
        if not self._closing.is_set():
            self._news = asyncio.Event()

    @staticmethod
    async def _wait(event, seconds):
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await event.wait()


def need_address(host):
    """Skip the test that runs now where loopback has no such address, as on macOS."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        try:
            probe.bind((host, 0))
        except OSError as error:
            if error.errno != errno.EADDRNOTAVAIL:
                raise
            add = f"sudo ifconfig lo0 alias {host}"
            pytest.skip(f"loopback has no address {host}; on macOS: {add}")


def bound(host, port=0):
    """Make a socket that has a port, and does not listen yet."""
    made = socket.socket()
    made.setblocking(False)
    if os.name == "posix":
        # Connections that ended a moment ago do not matter.
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host, port))
    except OSError:
        made.close()
        raise
    return made
