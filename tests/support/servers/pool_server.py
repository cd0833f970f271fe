"""A server whose connections break in a pool, and calls beside a bare session."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import socket
from collections import Counter
from contextlib import asynccontextmanager
from dataclasses import dataclass

import aiohttp
import pytest
from chains import connected, pass_on, retrying
from fault_server import (
    LINGER,
    End,
    Fault,
    FaultServer,
    Read,
    Received,
    bound,
    cut,
    response,
)
from wire_server import switch
from yarl import URL

from aioretry_smithy import Backoff, RetryStrategy, SessionBuilder

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

    def __init__(self):
        super().__init__()
        self.scripts = {}
        self.places = {}
        self.gate = asyncio.Event()
        self.gate.set()
        self.open = {}
        self._stale = {}

    def paths(self):
        """Count the requests of each path."""
        return Counter(request.target for request in self.requests)

    def to(self, path):
        """Return the requests of one path."""
        return [request for request in self.requests if request.target == path]

    async def arrived(self, count):
        """Wait until as many requests were received whole."""
        while self.processed < count:
            await self._news.wait()

    @contextlib.contextmanager
    def holding(self):
        """Answer the requests that come in the block when the block ends."""
        self.gate = asyncio.Event()
        try:
            yield
        finally:
            self.gate.set()

    def leave_stale(self, how=RESET):
        """Break each connection of now when it is used next, and not before."""
        self._stale |= {number: how for number, _ in self.open.values()}

    def drop(self, how=RESET):
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
    async def closed_port(self):
        """Refuse new connections in the block."""
        host, port = self._listener.getsockname()
        await self._stop_accepting()
        # Held, or somebody else may have it.
        self._listener = bound(host, port)
        try:
            yield
        finally:
            self._take_connections()

    async def _serve(self, connection, number):
        task = asyncio.current_task()
        self.open[task] = number, connection
        try:
            await super()._serve(connection, number)
        finally:
            del self.open[task]

    async def _read(self, connection, request, extent):
        await super()._read(connection, request, extent)
        self._announce()

    async def _fault_for(self, connection, request):
        await self._read(connection, request, Read.HEAD)
        fault = self._told(request) or self._answer(request)
        if fault.read is Read.WHOLE and request.header("Expect"):
            await asyncio.get_running_loop().sock_sendall(connection, CONTINUE)
        return fault

    def _told(self, request):
        stale = self._stale.pop(request.connection, None)
        if stale is not None:
            return stale
        if script := self.scripts.get(request.target):
            return script.pop(0)
        return self.places.get(request.place)

    def _answer(self, request):
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


@dataclass(frozen=True)
class Call:
    """One call, told from others by its path and its body."""

    method: str
    number: int

    @property
    def path(self):
        """Where it goes; a name in the path says it to the server."""
        return f"/{self.method}/{self.number}"

    @property
    def body(self):
        """What it sends."""
        return b"" if self.method == "GET" else self.path.encode() * 500

    async def send(self, session):
        """Make the call, and say whether it was answered, by its own answer."""
        data = self.body or None
        try:
            async with session.request(self.method, self.path, data=data) as response:
                assert self.path == await response.text()

                return response.status == 200
        except (aiohttp.ClientError, TimeoutError):
            return False


def begin(session, calls):
    """Begin calls together; none has got further than to be scheduled."""
    return [asyncio.create_task(call.send(session)) for call in calls]


def restart(how):
    """Break all connections when all of the calls have arrived."""

    async def fault(server, session, calls):
        before = server.processed
        with server.holding():
            tasks = begin(session, calls)
            await server.arrived(before + len(calls))
            server.drop(how)
        return await asyncio.gather(*tasks)

    return fault


def silence(how):
    """Leave connections of the pool stale, which shows only when they are used."""

    async def fault(server, session, calls):
        server.leave_stale(how)
        return await asyncio.gather(*begin(session, calls))

    return fault


def farewell(how, noticed=None):
    """Drop the idle connections, just as the calls begin or when that was noticed."""

    async def fault(server, session, calls):
        server.drop(how)
        if noticed is not None:
            await asyncio.sleep(noticed)
        return await asyncio.gather(*begin(session, calls))

    return fault


async def restart_half_way(server, session, calls):
    """Answer every other call, then break all connections, idle or not."""
    quick = asyncio.Event()
    for call in calls[1::2]:
        answer = response(200, call.path.encode())
        server.scripts[call.path] = [Fault(send=(quick, answer))]
    before = server.processed
    with server.holding():
        tasks = begin(session, calls)
        await server.arrived(before + len(calls))
        quick.set()
        await asyncio.gather(*tasks[1::2])
        server.drop(RESET)
    return await asyncio.gather(*tasks)


async def down_for_a_moment(server, session, calls):
    """Break all connections when the calls have arrived, and refuse new ones."""
    before = server.processed
    with server.holding():
        tasks = begin(session, calls)
        await server.arrived(before + len(calls))
        server.drop(RESET)
        async with server.closed_port():
            await asyncio.sleep(0.03)
    return await asyncio.gather(*tasks)


FAULTS = {
    **{f"restart, {name}": restart(how) for name, how in BREAKS.items()},
    **{f"silence, {name}": silence(how) for name, how in BREAKS.items()},
    "farewell as calls begin, closed": farewell(CLOSE),
    "farewell as calls begin, reset": farewell(RESET),
    "farewell that was noticed": farewell(CLOSE, 0.02),
    "restart half way": restart_half_way,
    "down for a moment": down_for_a_moment,
}
"""By name: what happens to the connections."""

LEFT_TO_CHANCE = {"down for a moment"}
"""Where a bare session saves what it happens to send again when the port is open."""

FRESH_BREAKS = {name for name in FAULTS if name.startswith(("restart", "down"))}
"""Where also connections break on which nothing was sent before."""


SOON = Backoff.fixed(0.01)
PATIENCE = 20.0
"""Seconds after which something hangs."""

MOST = 4
"""Requests of one attempt: the first, and three more on connections that were used."""


def standard(url, **arguments):
    """Build what is right for most services."""
    return SessionBuilder.standard(url, **arguments).build()


def plain(url, **arguments):
    """Build a session with retries and nothing else."""
    return connected(url, retrying(RetryStrategy.failsafe(SOON)), **arguments)


def never(url, **arguments):
    """Build a session that retries nothing."""
    return connected(url, retrying(RetryStrategy.never()), **arguments)


def beside_a_decorator(url, **arguments):
    """Build a session with retries around a user's decorator."""
    return connected(url, pass_on, retrying(RetryStrategy.failsafe(SOON)), **arguments)


CHAINS = {
    "standard": standard,
    "retries": plain,
    "retries, beside a decorator": beside_a_decorator,
    "never": never,
}
"""By name: what makes a session for a URL."""

RETRYING = {name: make for name, make in CHAINS.items() if "never" not in name}
NEVER = {name: make for name, make in CHAINS.items() if "never" in name}
BARE = {"bare": aiohttp.ClientSession}


def each(sessions):
    """Run a test with each of these, as the argument ``make``."""
    return pytest.mark.parametrize("make", sessions.values(), ids=sessions)


def in_use(session):
    """Count the connections that a call has."""
    return len(session.connector._acquired)


@dataclass(frozen=True)
class Storm:
    """Calls, and what becomes of the connections meanwhile.

    Attributes:
        fault: A name in ``FAULTS``.
        pool: The calls that find a connection in the pool, and those that do not.
        successes: The calls that succeeded before, on connections of their own.
        method: A method, or several in turn.
    """

    fault: str
    pool: tuple[int, int]
    successes: int
    method: str

    def __str__(self):
        pooled, fresh = self.pool
        calls = f"{pooled} pooled and {fresh} fresh {self.method}"
        return f"{self.fault}: {calls} after {self.successes}"

    @property
    def calls(self):
        """The calls that are under way together."""
        methods = itertools.cycle(self.method.split("-"))
        return [Call(next(methods), number) for number in range(sum(self.pool))]


@dataclass
class Outcome:
    """Which calls were saved, and what the server saw."""

    saved: set[Call]
    requests: list[Received]
    left: int

    def arrivals(self, call):
        """Return the requests of one call."""
        return [request for request in self.requests if request.target == call.path]


async def play(storm, make):
    """Make the calls of a storm with a session, and three more when it is over."""
    async with (
        asyncio.timeout(PATIENCE),
        PoolServer() as server,
        make(server.url) as session,
    ):
        for number in range(storm.successes):
            async with session.get(f"/closing/{number}") as response:
                assert 200 == response.status
        await warm(server, session, storm.pool[0])
        calls = storm.calls
        answered = await FAULTS[storm.fault](server, session, calls)
        if storm.fault not in LEFT_TO_CHANCE:
            after = [Call("GET", 1000 + number) for number in range(3)]
            calls += after
            answered += [await call.send(session) for call in after]
        left = in_use(session)
    saved = {call for call, fine in zip(calls, answered, strict=True) if fine}
    return Outcome(saved, server.requests, left)


async def warm(server, session, count):
    """Fill the pool with as many connections, each of which has answered once."""
    before = server.processed
    with server.holding():
        calls = [
            asyncio.create_task(Call("GET", 2000 + number).send(session))
            for number in range(count)
        ]
        await server.arrived(before + count)
    fine = await asyncio.gather(*calls)

    assert all(fine)


@asynccontextmanager
async def stale_pool(make, count=1, how=RESET, **arguments):
    """Serve a session whose pool has as many connections that break when used.

    Nothing may hang in the block, and at its end no connection may be in use.
    """
    async with (
        asyncio.timeout(PATIENCE),
        PoolServer() as server,
        make(server.url, **arguments) as session,
    ):
        await warm(server, session, count)
        server.requests.clear()
        server.leave_stale(how)
        yield server, session

        assert 0 == in_use(session)


async def status_of(calling):
    """Return the status that a call got, or None if it failed."""
    try:
        async with calling as response:
            await response.read()
            return response.status
    except (aiohttp.ClientError, TimeoutError):
        return None
