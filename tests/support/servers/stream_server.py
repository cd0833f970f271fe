"""Servers of streams: small ones, replicas that die, and one that records each byte."""

import asyncio
import contextlib
import random
import socket
from contextlib import asynccontextmanager

from aiohttp import web
from fault_server import need_address

TURNS = 10
"""Turns of the event loop in which a connection is taken, and some more."""


class StreamServer:
    """Serves each connection with a function, as an async context manager.

    A client may give up a connection that the kernel has made, which is taken all the
    same, if late: when the test is over. At its end the server waits for these, and
    cancels what is still being served.

    Args:
        serve: Is given a reader and a writer, which is closed afterwards. It may fail
            because the client went away.
        host: The address.
        options: Those of :func:`asyncio.start_server`.

    Attributes:
        served: The tasks that serve, or have served, a connection each.
    """

    def __init__(self, serve, host="127.0.0.1", **options):
        self.served = []
        self._function, self._host, self._options = serve, host, options

    async def __aenter__(self):
        self._server = await asyncio.start_server(
            self._take, self._host, 0, **self._options
        )
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *error):
        await take_connections()
        self.stop_listening()
        for task in self.served:
            task.cancel()
        for end in await asyncio.gather(*self.served, return_exceptions=True):
            if isinstance(end, Exception):
                raise end

    def url(self, scheme="http", path="/"):
        """Return the URL of a path."""
        return f"{scheme}://{self._host}:{self.port}{path}"

    def stop_listening(self):
        """Take no further connection."""
        self._server.close()

    def _take(self, reader, writer):
        # As a coroutine function it would have a task that nobody knows until it runs.
        self.served.append(asyncio.create_task(self._serve(reader, writer)))

    async def _serve(self, reader, writer):
        try:
            with contextlib.suppress(OSError, EOFError):  # the client went away
                await self._function(reader, writer)
        except RuntimeError:
            # What writes to a closed connection raises it with uvloop.
            if not writer.transport.is_closing():
                raise
        finally:
            writer.close()


async def take_connections():
    """Let servers of the loop take the connections that clients have made by now.

    To stop listening while a connection is being taken is an error of its own.
    """
    loop = asyncio.get_running_loop()
    for _ in range(TURNS):
        # Not asyncio.sleep(), which some tests replace.
        passed = loop.create_future()
        loop.call_soon(passed.set_result, None)
        await passed


def unavailable(request):
    return web.Response(status=503)


def hang_up(request):
    request.transport.abort()
    return web.Response()


def throttled(request):
    return web.json_response({"ok": False}, status=429, headers={"Retry-After": "0"})


async def in_pieces():
    yield b"a report"


class Replica:
    """A server at one address and port, of which a test takes the life.

    Attributes:
        requests: How many it has answered.
    """

    def __init__(self, host="127.0.0.1", port=None):
        self.host = host
        self.port = free_port(host) if port is None else port
        self.requests = 0
        self._runner = None

    @property
    def url(self):
        """Where it listens."""
        return f"http://{self.host}:{self.port}"

    async def start(self):
        """Listen, at the same port as before."""
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, self.host, self.port, reuse_address=True)
        await site.start()

    async def kill(self):
        """Listen no more, and cut all connections."""
        runner, self._runner = self._runner, None
        if runner is None:
            return
        for site in [*runner.sites]:
            await site.stop()
        server = runner.server
        for connection in [*server.connections]:
            if connection.transport is not None:
                connection.transport.abort()
        await runner.cleanup()

    async def _answer(self, request):
        self.requests += 1
        return web.Response(text=self.host)


@asynccontextmanager
async def running(*replicas):
    """Let replicas run for as long as the block lasts."""
    try:
        for each in replicas:
            await each.start()
        yield
    finally:
        for each in replicas:
            await each.kill()


def free_port(*hosts):
    """Return a port at which nobody listens on any of some addresses.

    No system hands it out unasked: neither a server that listens at port 0 can take it
    meanwhile, nor a connection.
    """
    for host in hosts:
        need_address(host)
    while True:
        port = random.SystemRandom().randrange(15_000, 30_000)
        try:
            for host in hosts:
                with socket.socket() as probe:
                    probe.bind((host, port))
        except OSError:
            continue
        return port


async def at_a_rate(rate, seconds, call):
    """Make so many calls a second, each in a task; return what they raised."""
    loop = asyncio.get_running_loop()
    started, number, tasks = loop.time(), 0, set()
    failures = []

    def end(task):
        tasks.discard(task)
        failure = task.exception()
        if failure is not None:
            failures.append(failure)

    while (passed := loop.time() - started) < seconds:
        due = int(passed * rate) - number
        number += due
        # What a machine that was busy is behind with is not made up for at once.
        for _ in range(min(due, 5)):
            task = asyncio.ensure_future(call())
            tasks.add(task)
            task.add_done_callback(end)
        await asyncio.sleep(0.002)
    if tasks:
        await asyncio.wait(tasks)
    return failures
