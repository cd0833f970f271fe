"""Servers that ask for tokens, keys or digests, and tokens that are fetched."""

import asyncio
import hashlib
import re

from aiohttp import web
from chains import connected, session

from aioretry_smithy import RefreshingClient


class Server:
    """Notes what it is asked, and answers by the path.

    ``/to/STATUS?url`` redirects; ``/secret`` wants the newest token; ``/break`` hangs
    up, but for the last time that is asked for it.
    """

    def __init__(self, host="127.0.0.1"):
        self.host = host
        self.seen = []
        self.issued = 0
        self.breaks = 1
        self.breaks_secret = False

    async def __aenter__(self):
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self.answer)
        self.runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self.runner.setup()
        site = web.TCPSite(self.runner, self.host, 0)
        await site.start()
        self.url = f"http://{self.host}:{site._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *error):
        await self.runner.cleanup()

    async def answer(self, request):
        body = await request.read()
        self.seen.append((request.method, request.path, request.headers, body))
        kind, _, rest = request.path[1:].partition("/")
        if kind == "to":
            location = {"Location": request.query_string}
            return web.Response(status=int(rest), headers=location)
        if kind == "token":
            self.issued += 1
            return web.Response(text=f"t{self.issued}")
        if kind == "break" and self.breaks:
            self.breaks -= 1
            request.transport.abort()
        if kind == "secret":
            if self.breaks_secret and f"t{self.issued}" in str(request.headers):
                self.breaks_secret = False
                request.transport.abort()
            for name in ("Authorization", "X-Key"):
                if f"t{self.issued}" in request.headers.get(name, ""):
                    return web.Response(text="the secret")
            return web.Response(status=401, text="no" * 9999)
        if kind == "strange":
            return web.Response(status=401)
        return web.Response(text="ok")

    def headers(self, name):
        return [(path, headers.get(name)) for _, path, headers, _ in self.seen]


def refreshing(server, *outside, between=(), header="Authorization", **settings):
    """Build a session that fetches its tokens from the server itself."""

    async def fetch():
        async with opened.get("/token") as response:
            return await response.text()

    named = {"hosts": settings.pop("hosts", None)}
    added = (*between, RefreshingClient.new_decorator(fetch, header=header, **named))
    opened = connected(server.url, *added, *between, *outside, **settings)
    return opened


LOGIN, PASSWORD = "reader", "correct horse"
_REALM, _NONCE = "tests", "0123456789abcdef"
_FIELD = re.compile(r'(\w+)="?([^",]+)"?')


def _hashed(*parts):
    return hashlib.sha256(":".join(parts).encode()).hexdigest()


class DigestServer:
    """Answers 401 to what is not signed, and what is by the faults, else 200.

    Give :meth:`handle` to a server of aiohttp.
    """

    def __init__(self, *faults):
        self._faults = iter(faults)
        self.bodies = []
        """The bodies of signed requests."""

        self.unsigned = []
        """Those that came without a signature."""

        self.forged = 0
        """The number of requests whose signature was of another body."""

    async def handle(self, request):
        body = await request.read()
        fields = dict(_FIELD.findall(request.headers.get("Authorization", "")))
        if not fields:
            self.unsigned.append(body)
            asked = f'Digest realm="{_REALM}", nonce="{_NONCE}", qop="auth-int"'
            headers = {"WWW-Authenticate": f"{asked}, algorithm=SHA-256"}
            return web.Response(status=401, headers=headers)
        if fields["response"] != self._expected(request, fields, body):
            self.forged += 1
            return web.Response(status=403)
        self.bodies.append(body)
        return web.Response(status=next(self._faults, 200))

    @staticmethod
    def _expected(request, fields, body):
        secret = _hashed(LOGIN, _REALM, PASSWORD)
        hashed_body = hashlib.sha256(body).hexdigest()
        asked = _hashed(request.method, request.raw_path, hashed_body)
        counted = fields["nc"], fields["cnonce"], fields["qop"]
        return _hashed(secret, _NONCE, *counted, asked)


BASE = "http://localhost/"


class Tokens:
    """Gives out tokens, each a second after it was asked for, the newest valid."""

    def __init__(self, *failures, takes=1.0):
        self.failures = [*failures]
        self.asked = 0
        self.takes = takes

    async def fetch(self):
        self.asked += 1
        await asyncio.sleep(self.takes)
        if self.failures and (failure := self.failures.pop(0)):
            raise failure
        return f"token-{self.asked}"

    def expire(self):
        self.asked += 1

    def answer(self, ctx, request):
        valid = f"Bearer token-{self.asked}"
        return 200 if request.headers.get("Authorization") == valid else 401

    def decorator(self, **settings):
        return RefreshingClient.new_decorator(self.fetch, **settings)


def refreshing_session(tokens, *outside, inside=(), answers=100, **settings):
    """Build a session with an origin, which refreshes its token."""
    transport = [tokens.answer] * answers if isinstance(answers, int) else answers
    settings = {"base_url": BASE, **settings}
    own = settings.pop("own", {})
    return session(transport, *inside, tokens.decorator(**own), *outside, **settings)


async def outcomes(opened, calls, **options):
    """Make calls at once; return their statuses, or the classes of their failures."""
    got = await asyncio.gather(
        *(opened.get("/", **options) for _ in range(calls)), return_exceptions=True
    )
    return [getattr(each, "status", type(each)) for each in got]


def sent(transport, header="Authorization"):
    return [each.headers.get(header) for each in transport.requests]
