"""Servers on loopback that do the same, and that can be killed and started again."""

import asyncio
import random
import socket
from contextlib import asynccontextmanager

from aiohttp import web
from fault_server import need_address


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
