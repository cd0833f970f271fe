"""Kinds of requests, ways to send and read them, and what they are made of."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import re
import ssl
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import aiohttp
import body_kinds
import trustme
from body_kinds import Content
from wire_server import Wire, WireServer

BOUNDARY = re.compile("[0-9a-f]{32}")


class Call(NamedTuple):
    """A request that is to be sent by a session."""

    session: aiohttp.ClientSession
    method: object
    url: object
    options: dict

    def __call__(self):
        return self.session.request(self.method, self.url, **self.options)


async def read(response):
    """Read a response whole, and tell all of it."""
    body = await response.read()
    return {**told(response), "body": body, "closed": response.closed}


def told(response):
    """Tell what a response is, without its body."""
    info = response.request_info
    asked = [
        (name, BOUNDARY.sub("boundary", value)) for name, value in info.headers.items()
    ]
    return {
        "class": type(response),
        "status": (response.status, response.reason, response.version),
        "headers": response.raw_headers,
        "cookies": response.cookies.output(),
        "method": response.method,
        "url": (response.url, response.real_url),
        "asked": (info.method, info.url, info.real_url, asked),
        "history": [(hop.status, hop.method, hop.url) for hop in response.history],
        "links": response.links,
        "charset": response.charset,
    }


async def by_verb(call):
    """Call ``session.get()`` and its like."""
    send = getattr(call.session, call.method.lower())
    async with send(call.url, **call.options) as response:
        return await read(response)


async def entered(call):
    """Read in a block, as nearly all do."""
    async with call() as response:
        return await read(response)


async def awaited(call):
    """Do without ``async with``."""
    return await read(await call())


async def twice(call):
    """Send the very same arguments two times."""
    return [await awaited(call) for _ in range(2)]


async def side_by_side(call):
    """Wait for the same connection three times at once."""
    return await asyncio.gather(*(awaited(call) for _ in range(3)))


async def unread(call):
    """Leave the body where it is."""
    async with call() as response:
        return told(response)


async def streamed(call):
    """Read the body in pieces."""
    async with call() as response:
        return b"".join([piece async for piece in response.content.iter_chunked(1000)])


async def as_json(call):
    """Decode the body, as JSON and as text."""
    async with call() as response:
        return await response.text(), await response.json()


async def as_text(call):
    """Decode the body."""
    async with call() as response:
        return await response.text()


async def refused_afterwards(call):
    """Ask for an exception when the response is there."""
    async with call() as response:
        response.raise_for_status()


async def read_from_error(call):
    """Read the response that an exception carries."""
    try:
        await call()
    except RefusedError as refusal:
        return await read(refusal.response)


async def tracked(call):
    """Look at the tracker of an upload."""
    tracker = call.options["upload_tracker"]
    answer = await awaited(call)
    return answer, tracker.bytes_written, tracker.upload_complete.done()


async def ws(call):
    """Open a websocket and read it to its end."""
    options = {"method": call.method, **call.options}
    async with call.session.ws_connect(call.url, **options) as socket:
        first, second = await socket.receive(), await socket.receive()
        return first, second.type, socket.close_code, socket.protocol


async def to_closed(call):
    """Use a session that is closed."""
    await call.session.close()
    await call()


async def without_url(call):
    """Forget an argument."""
    await call.session.request(call.method, **call.options)


class RefusedError(Exception):
    """Carries a response."""

    def __init__(self, response):
        super().__init__(f"refused {response.status}")
        self.response = response


@dataclass
class Scene:
    """Things that a request may be made of."""

    wire: Wire
    server: WireServer
    tls_server: WireServer
    trust: ssl.SSLContext
    content: body_kinds.Content
    seen: list = field(default_factory=list)
    """Notes of the request's own callbacks."""


class Fresh:
    """Stands for a value that is made anew each time, given the scene."""

    def __init__(self, make):
        self.make = make


def made(value, scene):
    """Return a value, made now if it is to be fresh."""
    return value.make(scene) if isinstance(value, Fresh) else value


@dataclass(frozen=True)
class Kind:
    """One kind of request: of which session, what, and how it is sent and read."""

    method: object
    url: object
    session: dict
    options: dict
    send: Callable
    again: bool
    """Whether it is sent again after a 503."""


def kind(
    method="GET",
    path="/",
    *,
    url=None,
    session=None,
    send=entered,
    again=True,
    **options,
):
    """Describe a request to a path at the server, or to a URL of its own."""
    if url is None:
        url = Fresh(lambda scene: str(scene.server.url) + path)
    return Kind(method, url, session or {}, options, send, again)


class Text(str):
    """A string of a class of its own."""

    __slots__ = ()


async def chunks(*parts):
    """Yield parts of a body."""
    for part in parts:
        yield part


def fresh(make):
    """Stand for a value that is made anew each time."""
    return Fresh(lambda scene: make())


get = functools.partial(kind, "GET")
post = functools.partial(kind, "POST")


def cookie_jar(**options):
    """Make a jar that takes cookies from IP addresses."""
    return fresh(lambda: aiohttp.CookieJar(unsafe=True, **options))


BASE = {"base_url": Fresh(lambda scene: scene.server.url / "api/")}
JAR = {"cookie_jar": cookie_jar()}
PROXY = Fresh(lambda scene: scene.server.url)
TLS_URL = Fresh(lambda scene: scene.tls_server.url)
TRUST = Fresh(lambda scene: scene.trust)
ELSEWHERE = "http://nowhere.test/path?q=1"
FILE = Fresh(lambda scene: scene.content.file())
AUTH = fresh(lambda: aiohttp.BasicAuth("user", "pä55", "utf-8"))


def new_tls():
    """Make contexts of TLS: of a server, and of a client that trusts it."""
    authority = trustme.CA()
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost", "127.0.0.1").configure_cert(served)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    return served, trusting


@contextlib.contextmanager
def content_to_send():
    """Write a file to send."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file.txt"
        path.write_text("0123456789" * 20)
        yield Content(path.read_bytes(), path)


@contextlib.asynccontextmanager
async def opened_scene(tls, content):
    """Run servers that record what they are sent."""
    served, trusting = tls
    wire = Wire()
    async with WireServer(wire) as server, WireServer(wire, served) as tls_server:
        yield Scene(wire, server, tls_server, trusting, content)
