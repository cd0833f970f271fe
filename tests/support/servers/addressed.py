"""Servers at several addresses of loopback, on one port, that note what they see."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from typing import NamedTuple
from weakref import WeakKeyDictionary

import trustme
from aiohttp import web
from chains import connected, retrying
from fault_server import bound, need_address
from pool_server import PoolServer
from stream_server import take_connections
from yarl import URL

from aioretry_smithy import (
    Backoff,
    Endpoint,
    EndpointGroup,
    EndpointSelectionStrategy,
    RetryStrategy,
)

HOSTS = ("127.0.0.1", "127.0.0.2", "127.0.0.3")
NAME = "orders.test"
IN_ORDER = EndpointSelectionStrategy.in_order()
ROUND_ROBIN = EndpointSelectionStrategy.round_robin()
RETRIES = retrying(RetryStrategy.failsafe(Backoff.without_delay()))


class Seen(NamedTuple):
    """What a server saw of a request."""

    at: str
    """The address of the server."""

    method: str
    path: str
    host: str
    name: str | None
    """The name that the client asked for when TLS began."""

    cookie: str | None
    authorization: str | None
    body: bytes
    connection: int
    """Tells connections apart."""


class Servers:
    """Servers at some addresses, on one port, as an async context manager.

    ``/see?status=302&to=URL`` sends on to a URL, ``/cookie?a=1`` sets cookies,
    ``/ws`` is a websocket that answers once, with the address; ``/digest`` wants
    digest credentials, ``/late`` waits for :attr:`gate`; all others are answered with
    the address, and with the status of :attr:`statuses`.

    Attributes:
        seen: All requests, in order.
        statuses: By address: what is answered in place of 200.
        gate: Late answers wait while it is not set.
        extra: Headers of each answer.
    """

    def __init__(self, *hosts, tls=None):
        self.hosts = hosts
        self.seen = []
        self.statuses = {}
        self.gate = asyncio.Event()
        self.port = 0
        self._tls = tls
        self._names = WeakKeyDictionary()
        self._connections = {}
        self._news = asyncio.Event()
        if tls is not None:
            tls.sni_callback = self._note_name

    def _note_name(self, connection, name, context):
        self._names[connection] = name

    async def __aenter__(self):
        for host in self.hosts:
            need_address(host)
        self._runner = web.ServerRunner(web.Server(self._handle), shutdown_timeout=0.1)
        await self._runner.setup()
        for host in self.hosts:
            await self.start(host)
        return self

    async def start(self, host):
        """Listen at one more address."""
        site = web.TCPSite(self._runner, host, self.port, ssl_context=self._tls)
        await site.start()
        if not self.port:
            listening = site._server
            self.port = listening.sockets[0].getsockname()[1]

    async def __aexit__(self, *error):
        self.gate.set()
        await take_connections()
        await self._runner.cleanup()

    @property
    def scheme(self):
        """The scheme of the URLs."""
        return "http" if self._tls is None else "https"

    def url(self, host=NAME, scheme=None):
        """Return how URLs begin, with the name of the service unless told otherwise."""
        return URL(f"{scheme or self.scheme}://{host}:{self.port}/")

    def endpoints(self, name=NAME):
        """Return the endpoints: addresses behind a name."""
        return [Endpoint(self.url(name), address=host) for host in self.hosts]

    def group(self, name=NAME, **settings):
        """Make a group of the addresses, which are asked in order."""
        settings.setdefault("selection", IN_ORDER)
        return EndpointGroup.of(*self.endpoints(name), **settings)

    def session(self, **settings):
        """Make a session that calls the group, and retries."""
        return connected(self.group(), RETRIES, **settings)

    async def arrived(self, count):
        """Wait until there were as many requests."""
        while len(self.seen) < count:
            self._news.clear()
            await self._news.wait()

    def to(self, host):
        """Return the requests to one address."""
        return [each for each in self.seen if each.at == host]

    @property
    def asked(self):
        """The last digits of the addresses of all requests, in order."""
        return [each.at.rpartition(".")[2] for each in self.seen]

    async def _handle(self, request):
        transport = request.transport
        host = transport.get_extra_info("sockname")[0]
        secured = transport.get_extra_info("ssl_object")
        # They are kept, or another one would have the same number.
        self._connections[id(transport)] = transport
        self.seen.append(
            Seen(
                host,
                request.method,
                request.raw_path,
                request.headers["Host"],
                None if secured is None else self._names.get(secured),
                request.headers.get("Cookie"),
                request.headers.get("Authorization"),
                await request.read(),
                id(transport),
            )
        )
        self._news.set()
        return await self._answer(request, host)

    async def _answer(self, request, host):
        match request.path:
            case "/see":
                status = int(request.query.get("status", 302))
                headers = {"Location": request.query["to"]}
                return web.Response(status=status, headers=headers)
            case "/ws":
                connection = web.WebSocketResponse()
                await connection.prepare(request)
                await connection.send_str(host)
                await connection.receive()
                return connection
            case "/cookie":
                response = web.Response(text=host)
                for name, value in request.query.items():
                    response.set_cookie(name, value)
                return response
            case "/digest" if "Authorization" not in request.headers:
                challenge = f'Digest realm="orders", nonce="{host}", qop="auth"'
                return web.Response(status=401, headers={"WWW-Authenticate": challenge})
            case "/late":
                await self.gate.wait()
        return web.Response(status=self.statuses.get(host, 200), text=host)


class PoolAt(PoolServer):
    """A :class:`PoolServer` at some address, and at some port unless that is 0."""

    def __init__(self, host, port=0):
        super().__init__()
        self._host, self._port = host, port

    def _listen(self, port):
        need_address(self._host)
        self._listener = bound(self._host, port or self._port)
        self._take_connections()


@contextlib.asynccontextmanager
async def pools(*hosts):
    """Run servers whose connections break when they are told to, on one port."""
    async with contextlib.AsyncExitStack() as stack:
        opened = []
        for host in hosts:
            port = opened[0].url.port or 0 if opened else 0
            opened.append(PoolAt(host, port))
            await stack.enter_async_context(opened[-1])
        yield opened


def issue(*names):
    """Make contexts of TLS: of a server that has these names, and of its clients."""
    authority = trustme.CA()
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    return served(authority, *names), trusting


def served(authority, *names):
    """Make the context of a server that has these names."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*names).configure_cert(context)
    return context


async def text_of(client, url="/orders", **options):
    """Make a call, and return the address that answered."""
    async with client.get(url, **options) as response:
        return str(await response.text())


async def texts_of(client, count, url="/orders"):
    """Make calls one after another, and return the last digits of the addresses."""
    return [(await text_of(client, url)).rpartition(".")[2] for _ in range(count)]


def in_flight(group):
    """Return how many requests are under way at each endpoint."""
    return [state.in_flight for state in group.states.values()]


def resolving(*hosts):
    """Make a resolver with an answer that can be replaced, in its list."""
    answer = [*hosts]

    async def resolve(host, port):
        resolve.asked += 1
        return [(each, 1.0) for each in answer]

    resolve.answer, resolve.asked = answer, 0
    return resolve
