"""Keys and tokens on the wire: they go where they belong, whatever redirects say."""

from __future__ import annotations

import asyncio
import warnings

import aiohttp
import pytest
from aiohttp import web
from chains import connected, pass_on, retrying

from aioretry_smithy import (
    Backoff,
    EndpointGroup,
    IdempotencyKeyClient,
    LoadBalancingClient,
    RefreshingClient,
    RequestLog,
    RetryStrategy,
    client_decorator,
    decorate,
)

SAFELY = RetryStrategy.failsafe(Backoff.without_delay())
PATIENCE = 20.0
CHAINS = pytest.mark.parametrize("between", [(), (pass_on,)], ids=["own", "foreign"])


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


@pytest.fixture
async def own():
    """The session's own server."""
    async with asyncio.timeout(PATIENCE), Server() as server:
        yield server


@pytest.fixture
async def stranger():
    """Another one."""
    async with Server() as server:
        yield server


def refreshing(server, *outside, between=(), header="Authorization", **settings):
    """Build a session that fetches its tokens from the server itself."""

    async def fetch():
        async with opened.get("/token") as response:
            return await response.text()

    named = {"hosts": settings.pop("hosts", None)}
    row = (*between, RefreshingClient.new_decorator(fetch, header=header, **named))
    opened = connected(server.url, *row, *between, *outside, **settings)
    return opened


class TestRedirects:
    """Neither key nor token follows to another origin, nor back from there."""

    @CHAINS
    @pytest.mark.parametrize("header", ["Authorization", "X-Key"])
    @pytest.mark.parametrize("status", [302, 307])
    async def test_token_stays_at_home(self, own, stranger, header, status, between):
        """By itself aiohttp drops ``Authorization`` alone."""
        async with refreshing(own, between=between, header=header) as opened:
            async with opened.get(f"/to/{status}?{stranger.url}/strange") as response:
                assert 401 == response.status
            async with opened.get(f"/to/{status}?/secret") as response:
                assert 200 == response.status
            back = f"{own.url}/secret"
            async with opened.get(
                f"/to/{status}?{stranger.url}/to/{status}?{back}"
            ) as response:
                assert 401 == response.status

        assert [(path, None) for path, _ in stranger.headers(header)] == (
            stranger.headers(header)
        )
        # The 401 of a stranger has fetched none.
        assert 1 == own.issued
        assert None is own.headers(header)[-1][1]

    @CHAINS
    async def test_key_stays_at_home(self, own, stranger, between):
        """Though the POST goes on there."""
        key = IdempotencyKeyClient.new_decorator()
        row = (*between, retrying(SAFELY), *between, key, *between)
        async with connected(own.url, *row) as opened:
            async with opened.post(f"/to/307?{stranger.url}/", data=b"tea"):
                pass
            async with opened.post("/to/307?/orders", data=b"tea"):
                pass

        assert [("/", None)] == stranger.headers("Idempotency-Key")
        assert b"tea" == stranger.seen[0][3]
        sent = [value for _, value in own.headers("Idempotency-Key")]
        assert None not in sent
        assert sent[1] == sent[2]

    async def test_named_host_keeps_it_neither(self, own, stranger):
        """It is another origin, and the caller did not ask for it."""
        hosts = [url.url.removeprefix("http://") for url in (own, stranger)]
        async with refreshing(own, header="X-Key", hosts=hosts) as opened:
            async with opened.get(f"/to/302?{stranger.url}/"):
                pass
            async with opened.get(f"{stranger.url}/there"):
                pass

        assert [("/", None), ("/there", "Bearer t1")] == stranger.headers("X-Key")

    async def test_header_of_the_caller_goes_where_aiohttp_sends_it(
        self, own, stranger
    ):
        """It is not ours to take off."""
        async with refreshing(own, header="X-Key") as opened:
            url = f"/to/302?{stranger.url}/"
            async with opened.get(url, headers={"X-Key": "mine"}):
                pass

        assert [("/", "mine")] == stranger.headers("X-Key")


class TestMiddlewares:
    """Those of the session, or of a request, do their work as ever."""

    async def test_they_are_kept(self, own, stranger):
        """Ours is one more, and sees each hop."""

        def marking(name):
            async def mark(request, handler):
                request.headers[name] = "1"
                return await handler(request)

            return mark

        session = {"middlewares": (marking("X-Session"),)}
        async with refreshing(own, header="X-Key", **session) as opened:
            async with opened.get("/one"):
                pass
            async with opened.get("/two", middlewares=(marking("X-Request"),)):
                pass
            async with opened.get(
                f"/to/302?{stranger.url}/", middlewares=(marking("X-Request"),)
            ):
                pass

        marks = {
            path: ("X-Session" in headers, "X-Request" in headers)
            for _, path, headers, _ in own.seen
        }
        assert (True, False) == marks["/one"]
        assert (False, True) == marks["/two"]
        assert [("/", "1")] == stranger.headers("X-Request")
        assert [("/", None)] == stranger.headers("X-Key")


class TestCredentialsInFiles:
    """Sessions with ``trust_env`` may find credentials in a file."""

    @pytest.fixture(autouse=True)
    def netrc(self, tmp_path, monkeypatch):
        """Have a password for the own server and for others."""
        file = tmp_path / "netrc"
        file.write_text("machine 127.0.0.1 login me password pw\n")
        file.chmod(0o600)
        monkeypatch.setenv("NETRC", str(file))

    @pytest.mark.filterwarnings("ignore::DeprecationWarning")
    async def test_token_comes_before_those(self, own, stranger):
        """Both would be refused by aiohttp; a stranger gets what it always gets."""
        async with refreshing(own, trust_env=True) as opened:
            async with opened.get("/secret") as response:
                assert 200 == response.status
            async with opened.get(f"/to/302?{stranger.url}/"):
                pass

        sent = dict(own.headers("Authorization"))
        assert "Bearer t1" == sent["/secret"]
        assert "Bearer t1" == sent["/to/302"]
        assert "Bearer t1" not in dict(stranger.headers("Authorization")).values()


class TestConnections:
    """A refresh takes one connection, and gives it back."""

    @CHAINS
    async def test_pool_of_one_is_enough(self, own, between):
        """For the fetch over the same session too; the body of the 401 is long."""
        connector = aiohttp.TCPConnector(limit=1)
        row = (*between, retrying(SAFELY))
        async with refreshing(
            own, *row, between=between, connector=connector
        ) as opened:
            async with opened.get("/secret") as response:
                assert "the secret" == await response.text()
            own.issued += 1
            async with opened.get("/secret") as response:
                assert "the secret" == await response.text()
                log = RequestLog.of(response)
            own.issued += 1
            got = await asyncio.gather(*(read(opened, "/secret") for _ in range(5)))

        assert ["the secret"] * 5 == got
        assert [401, 200] == [each.response_status for each in log.children]

    async def test_stream_that_is_spent_gets_its_401(self, own):
        """Nothing is sent that would be empty."""

        async def chunks():
            yield b"tea"

        async with refreshing(own, retrying(SAFELY)) as opened:
            async with opened.get("/"):
                pass
            own.issued += 1
            async with opened.post("/secret", data=chunks()) as response:
                assert 401 == response.status
            async with opened.post("/secret", data=b"tea") as response:
                assert 200 == response.status

        assert [b"tea", b"tea"] == [
            body for method, _, _, body in own.seen if method == "POST"
        ]

    async def test_cancelled_waiter_gives_all_back(self, own):
        """One of three; the pool is free afterwards."""
        connector = aiohttp.TCPConnector(limit=1)
        async with refreshing(own, connector=connector) as opened:
            tasks = [asyncio.create_task(read(opened, "/secret")) for _ in range(3)]
            await asyncio.sleep(0)
            tasks[0].cancel()
            got = await asyncio.gather(*tasks, return_exceptions=True)
            assert "the secret" == await read(opened, "/secret")

        assert isinstance(got[0], asyncio.CancelledError)
        assert ["the secret"] * 2 == got[1:]
        assert 1 == own.issued


async def read(opened, path):
    async with opened.get(path) as response:
        return await response.text()


class TestRetries:
    """A key makes a POST one that may be repeated."""

    @CHAINS
    async def test_post_that_broke_is_sent_again_with_its_key(self, own, between):
        """Without a key it is not."""
        key = IdempotencyKeyClient.new_decorator()
        for row, outcome in ((key,), 2), ((), 1):
            own.seen.clear()
            own.breaks = 1
            async with connected(
                own.url, *between, retrying(SAFELY), *between, *row
            ) as opened:
                try:
                    async with opened.post("/break", json={"tea": 1}) as response:
                        assert 200 == response.status
                except aiohttp.ClientError:
                    assert not row
            sent = own.headers("Idempotency-Key")
            assert outcome == len(sent)
            assert 1 == len({*sent})

    @CHAINS
    @pytest.mark.parametrize("header", ["Idempotency-Key", "X-Order-Key"])
    async def test_stranger_without_the_key_gets_no_repetition(
        self, own, stranger, header, between
    ):
        """It would carry out the POST that a redirect leads there once more."""
        key = IdempotencyKeyClient.new_decorator(header=header)
        row = (*between, retrying(SAFELY), *between, key)
        async with connected(own.url, *row) as opened:
            with pytest.raises(aiohttp.ServerDisconnectedError):
                await opened.post(f"/to/307?{stranger.url}/break", data=b"tea")
            assert 1 == len(stranger.seen)

            # A GET may be sent again, with no key.
            stranger.breaks = 1
            async with opened.post(f"/to/302?{stranger.url}/break") as response:
                assert 200 == response.status
            assert ["POST", "GET", "GET"] == [method for method, *_ in stranger.seen]

            # What went to the stranger is no matter of another attempt, or call.
            own.breaks = 1
            async with opened.post("/break", data=b"tea") as response:
                assert 200 == response.status

    async def test_stale_connection_is_no_loss(self, own):
        """A POST with a key of ours is sent again like a GET, whatever its header."""
        key = IdempotencyKeyClient.new_decorator(header="X-Order-Key")
        row = retrying(RetryStrategy.never()), key
        async with connected(own.url, *row) as opened:
            await read(opened, "/")
            async with opened.post("/break", json={"tea": 1}) as response:
                assert 200 == response.status
        _, first, again = own.headers("X-Order-Key")

        assert first == again
        assert None is not first[1]


class TestGroups:
    """The endpoints of a group are the session's own."""

    async def test_endpoints_get_token_and_key(self, own, stranger):
        """Also the one that is asked next; a redirect from one to another does not."""
        dead = "http://127.0.0.1:9"
        group = EndpointGroup.of(own.url, dead)

        async def fetch():
            own.issued += 1
            return f"t{own.issued}"

        row = (
            RefreshingClient.new_decorator(fetch, header="X-Key"),
            retrying(SAFELY),
            IdempotencyKeyClient.new_decorator(),
        )
        async with connected(group, *row) as opened:
            for _ in range(4):
                async with opened.post("/secret", data=b"tea") as response:
                    assert 200 == response.status
            own.issued += 1
            async with opened.post("/secret", data=b"tea") as response:
                assert 200 == response.status
            async with opened.get(f"/to/302?{stranger.url}/"):
                pass

        assert None not in dict(own.headers("X-Key")).values()
        assert [("/", None)] == stranger.headers("X-Key")

    async def test_address_of_an_endpoint_does_not_matter(self, own):
        """The name does, by which it is asked."""
        port = own.url.rpartition(":")[2]
        url = f"http://orders.example:{port}"

        async def resolve(host, port):
            return [("127.0.0.1", 60.0)]

        group = EndpointGroup.dns(url, resolver=resolve)

        async def fetch():
            own.issued += 1
            return f"t{own.issued}"

        for decorate_it in (False, True):
            row = (
                RefreshingClient.new_decorator(fetch, header="X-Key"),
                retrying(SAFELY),
            )
            if decorate_it:
                balancing = LoadBalancingClient.new_decorator(
                    group, service="http://lib.example/"
                )
                opened = decorate(aiohttp.ClientSession(), row[0], balancing, row[1])
                asked = "http://lib.example/secret"
            else:
                opened, asked = connected(group, *row), "/secret"
            async with opened, opened.get(asked) as response:
                assert 200 == response.status


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
async def test_credentials_win_where_aiohttp_would_refuse_both(own):
    """Of the request, the URL and the session; no ValueError, no fetch."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        auth = aiohttp.BasicAuth("me", "pw")
    host = own.url.removeprefix("http://")
    async with refreshing(own) as opened:
        for url, options in (
            ("/", {"auth": auth}),
            (f"http://me:pw@{host}/", {}),
            ("/", {"headers": {"Authorization": auth.encode()}}),
        ):
            async with opened.get(url, **options) as response:
                assert 200 == response.status
    async with refreshing(own, auth=auth) as opened, opened.get("/"):
        pass

    assert {("/", auth.encode())} == {*own.headers("Authorization")}
    assert 0 == own.issued


async def test_websocket_gets_a_token(own):
    """Its handshake is a GET; the server of this test does not speak it."""
    async with refreshing(own) as opened:
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await opened.ws_connect("/socket")

    assert "Bearer t1" == dict(own.headers("Authorization"))["/socket"]


async def test_second_hop_that_broke_is_sent_again_without_them(own, stranger):
    """The resend alone repeats a hop, and knows where it began."""
    async with refreshing(own, retrying(SAFELY), header="X-Key") as opened:
        # So that there are connections of the pool to break.
        for url in ("/", f"{stranger.url}/"):
            async with opened.get(url):
                pass
        stranger.seen.clear()
        async with opened.get(f"/to/302?{stranger.url}/break") as response:
            assert 200 == response.status

    assert [("/break", None)] * 2 == stranger.headers("X-Key")


@pytest.mark.parametrize("is_group", [False, True])
async def test_decorator_that_asks_a_stranger_brings_neither(own, stranger, is_group):
    """Unless it is named; nor is its 401 a reason to fetch, as far as that is known."""

    @client_decorator
    async def elsewhere(delegate, ctx, request):
        url = f"{stranger.url}/strange"
        return await delegate.execute(ctx, request.replace(url=url))

    base = EndpointGroup.of(own.url) if is_group else own.url
    fetched = []

    async def fetch():
        fetched.append(1)
        return "t1"

    for hosts in None, [own.url, stranger.url]:
        row = [
            elsewhere,
            RefreshingClient.new_decorator(fetch, hosts=hosts),
            retrying(SAFELY),
            IdempotencyKeyClient.new_decorator(hosts=hosts),
        ]
        fetched.clear()
        async with connected(base, *row) as opened, opened.post("/") as response:
            assert 401 == response.status
        values = [headers for _, _, headers, _ in stranger.seen]
        names = {"Authorization", "Idempotency-Key"}
        seen = {name for name in names if name in values[-1]}
        assert (set() if hosts is None else names) == seen
        # The endpoints of a group are not known to the client.
        assert (2 if hosts or is_group else 1) == len(fetched)


async def test_header_that_a_decorator_takes_off_stays_off(own):
    """Nothing is put on again."""

    @client_decorator
    async def bare(delegate, ctx, request):
        return await delegate.execute(ctx, request.replace(headers={}))

    async with refreshing(own, between=(bare,)) as opened, opened.get("/") as response:
        assert 200 == response.status

    assert ("/", None) == own.headers("Authorization")[-1]


async def test_span_of_the_call_counts_one_attempt_and_the_wait(own):
    """The request with another token is none, but one can see when it waited."""
    pytest.importorskip("opentelemetry.sdk")
    from heard import Heard  # noqa: PLC0415

    heard = Heard()
    row = retrying(SAFELY), heard.decorator()
    async with refreshing(own, *row, between=()) as opened:
        await read(opened, "/secret")
        own.issued += 1
        await read(opened, "/secret")
    call = next(each for each in reversed(heard.spans()) if each.events)
    (event,) = call.events

    assert 1 == call.attributes["aioretry_smithy.attempts"]
    assert "aioretry_smithy.wait" == event.name
    assert "token" == event.attributes["aioretry_smithy.delay_source"]


async def test_stale_connection_after_another_token_is_rescued(own):
    """Each is a request of the same attempt; a refusal of tokens is no break."""
    async with refreshing(own, retrying(RetryStrategy.never())) as opened:
        await read(opened, "/")
        own.issued += 1
        own.breaks_secret = True
        async with opened.get("/secret") as response:
            log = RequestLog.of(response)

    assert 200 == log.response_status
    assert ["token", "stale_connection", None] == [
        each.delay_source for each in log.children
    ]
