"""A server whose connections break while a client has them in its pool."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections import Counter
from collections.abc import AsyncIterator, Iterator

from fault_server import LINGER, End, Fault, FaultServer, Read, Received, cut, response
from loopback import bound
from wire_server import switch
from yarl import URL

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
EARLY_HINTS = b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n"
PART_OF_A_HEAD = b"HTTP/1.1 200 OK\r\nContent-Le"

RESET = cut(end=End.RESET)
CLOSE = cut(end=End.CLOSE)
BREAKS = {
    "reset": RESET,
    "closed": CLOSE,
    "closed within the head": cut(PART_OF_A_HEAD, end=End.CLOSE),
    "closed after a 100": cut(CONTINUE, end=End.CLOSE),
    "reset after a 103": cut(EARLY_HINTS, end=End.RESET),
}
"""By name: how a connection breaks before the headers of an answer are complete."""


class PoolServer(FaultServer):
    """A server on loopback that answers, until it is told to break connections.

    What it answers, a path says: ``/closing`` ends the connection loudly, ``/ws`` is a
    websocket, ``/see/302/b`` sends on to ``/b``; all others are answered 200, with the
    path as the body.

    Attributes:
        scripts: By path: what becomes of its next requests, before all else.
        places: What becomes of the second request of each connection, and so on.
        gate: Answers wait while it is not set.
        open: The connections, by the task that serves each.
    """

    def __init__(self) -> None:
        super().__init__()
        self.scripts: dict[str, list[Fault]] = {}
        self.places: dict[int, Fault] = {}
        self.gate = asyncio.Event()
        self.gate.set()
        self.open: dict[asyncio.Task[object], tuple[int, socket.socket]] = {}
        self._stale: dict[int, Fault] = {}

    def paths(self) -> Counter[str]:
        """Count the requests of each path."""
        return Counter(request.target for request in self.requests)

    def to(self, path: str) -> list[Received]:
        """Return the requests of one path."""
        return [request for request in self.requests if request.target == path]

    async def arrived(self, count: int) -> None:
        """Wait until as many requests were received whole."""
        while self.processed < count:
            await self._news.wait()

    @contextlib.contextmanager
    def holding(self) -> Iterator[None]:
        """Answer the requests that come in the block when the block ends."""
        self.gate = asyncio.Event()
        try:
            yield
        finally:
            self.gate.set()

    def leave_stale(self, how: Fault = RESET) -> None:
        """Break each connection of now when it is used next, and not before."""
        self._stale |= {number: how for number, _ in self.open.values()}

    def drop(self, how: Fault = RESET) -> None:
        """Break all connections at once, whatever goes on there."""
        for task, (_, connection) in self.open.items():
            with contextlib.suppress(OSError):  # the client was faster
                for part in how.send:
                    assert isinstance(part, bytes)
                    connection.send(part)
                if how.end is End.RESET:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER)
                else:
                    connection.shutdown(socket.SHUT_RDWR)
            task.cancel()

    @contextlib.asynccontextmanager
    async def closed_port(self) -> AsyncIterator[None]:
        """Refuse new connections in the block."""
        host, port = self._listener.getsockname()
        await self._stop_accepting()
        # Held, or somebody else may have it.
        self._listener = bound(host, port)
        try:
            yield
        finally:
            self._take_connections()

    async def _serve(self, connection: socket.socket, number: int) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.open[task] = number, connection
        try:
            await super()._serve(connection, number)
        finally:
            del self.open[task]

    async def _read(
        self, connection: socket.socket, request: Received, extent: Read | int
    ) -> None:
        await super()._read(connection, request, extent)
        self._announce()

    async def _fault_for(self, connection: socket.socket, request: Received) -> Fault:
        await self._read(connection, request, Read.HEAD)
        fault = self._told(request) or self._answer(request)
        if fault.read is Read.WHOLE and request.header("Expect"):
            await asyncio.get_running_loop().sock_sendall(connection, CONTINUE)
        return fault

    def _told(self, request: Received) -> Fault | None:
        stale = self._stale.pop(request.connection, None)
        if stale is not None:
            return stale
        if script := self.scripts.get(request.target):
            return script.pop(0)
        return self.places.get(request.place)

    def _answer(self, request: Received) -> Fault:
        path = request.target
        match URL(path).parts[1:]:
            case ("ws",):
                return Fault(send=(switch(request.head),), end=End.CLOSE)
            case ("see", status, *rest):
                where = f"Location: /{'/'.join(rest)}"
                sent, end = response(int(status), b"", where), End.KEEP
            case ("closing", *_):
                sent, end = response(200, b"last", "Connection: close"), End.CLOSE
            case _:
                sent, end = response(200, path.encode()), End.KEEP
        if request.method == "HEAD":
            sent = sent.partition(b"\r\n\r\n")[0] + b"\r\n\r\n"
        return Fault(send=(self.gate, sent), end=end)
