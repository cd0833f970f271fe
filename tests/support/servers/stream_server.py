"""A server of streams that leaves no task and no connection behind, and answers."""

import asyncio
import contextlib

from aiohttp import web

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
