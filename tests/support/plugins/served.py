"""A server on loopback that writes what it is told, byte by byte."""

import asyncio
import contextlib
import socket
import struct

import pytest
from aiohttp import web
from request_kind import content_to_send, new_tls, opened_scene
from stream_server import StreamServer, take_connections

LINGER = struct.pack("ii", 1, 0)


@pytest.fixture
async def serve():
    """Answer requests from lists of parts, the last list again and again.

    Of a list, bytes are written, numbers and events are waited for, None hangs up
    and ConnectionResetError resets the connection. Returns the URL of the server.
    """
    async with contextlib.AsyncExitStack() as servers:

        async def start(*answers, tls=None):
            answers = list(answers)

            async def handle(reader, writer):
                # A body that nobody reads is no request.
                with contextlib.suppress(asyncio.LimitOverrunError):
                    while await reader.readuntil(b"\r\n\r\n"):
                        parts = answers.pop(0) if answers[1:] else answers[0]
                        await write(writer, parts)

            server = await servers.enter_async_context(StreamServer(handle, ssl=tls))
            return server.url("http" if tls is None else "https")

        yield start


async def write(writer, parts):
    for part in parts:
        if isinstance(part, bytes):
            writer.write(part)
            await writer.drain()
        elif isinstance(part, asyncio.Event):
            await part.wait()
        elif part is None:
            writer.close()
        elif part is ConnectionResetError:
            connection = writer.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER)
            writer.transport.abort()
        else:
            await asyncio.sleep(part)


@pytest.fixture
def closed_port():
    """A port of 127.0.0.1 that is held: nobody listens there, and nobody else can."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


@pytest.fixture
async def serving(aiohttp_server):
    """A function that starts a server whose one handler answers every request."""

    async def start(handler):
        application = web.Application(client_max_size=1 << 30)
        application.router.add_route("*", "/{path:.*}", handler)
        return await aiohttp_server(application)

    yield start
    await take_connections()


@pytest.fixture
async def echoing(serving):
    """Serve a websocket that sends each message back; its headers promise a text."""

    async def echo(request):
        socket = web.WebSocketResponse()
        socket.headers["Content-Type"] = "text/plain"
        await socket.prepare(request)
        async for message in socket:
            await socket.send_str(message.data)
        return socket

    server = await serving(echo)
    return server.make_url("/")


@pytest.fixture(scope="module")
def contexts():
    """Contexts of TLS: of a server, and of a client that trusts it."""
    return new_tls()


@pytest.fixture(scope="module")
def content():
    """What bodies are made of, with a file to send."""
    with content_to_send() as made:
        yield made


@pytest.fixture
async def scene(contexts, content):
    """Servers that record what they are sent, and what a request is made of."""
    async with opened_scene(contexts, content) as opened:
        yield opened
