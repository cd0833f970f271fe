"""Keys and tokens on the wire go where they belong, and to nobody else."""

import asyncio

import aiohttp
import pytest
from chains import SAFELY, connected, pass_on, retrying
from token_servers import refreshing

from aioretry_smithy import (
    EndpointGroup,
    IdempotencyKeyClient,
    LoadBalancingClient,
    RefreshingClient,
    RequestLog,
    RetryStrategy,
    client_decorator,
    decorate,
)

CHAINS = pytest.mark.parametrize("between", [(), (pass_on,)], ids=["own", "foreign"])


class TestConnections:
    """A refresh takes one connection, and gives it back."""

    @CHAINS
    async def test_pool_of_one_is_enough(self, own, between):
        """For the fetch over the same session too; the body of the 401 is long."""
        connector = aiohttp.TCPConnector(limit=1)
        added = (*between, retrying(SAFELY))
        async with refreshing(
            own, *added, between=between, connector=connector
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


async def read(opened, path):
    async with opened.get(path) as response:
        return await response.text()


class TestRetries:
    """A key makes a POST one that may be repeated."""

    @CHAINS
    @pytest.mark.parametrize("header", ["Idempotency-Key", "X-Order-Key"])
    async def test_stranger_without_the_key_gets_no_repetition(
        self, own, stranger, header, between
    ):
        """It would carry out the POST that a redirect leads there once more."""
        key = IdempotencyKeyClient.new_decorator(header=header)
        added = (*between, retrying(SAFELY), *between, key)
        async with connected(own.url, *added) as opened:
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
        added = retrying(RetryStrategy.never()), key
        async with connected(own.url, *added) as opened:
            await read(opened, "/")
            async with opened.post("/break", json={"tea": 1}) as response:
                assert 200 == response.status
        _, first, again = own.headers("X-Order-Key")

        assert first == again
        assert None is not first[1]


class TestGroups:
    """The endpoints of a group are the session's own."""

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
            added = (
                RefreshingClient.new_decorator(fetch, header="X-Key"),
                retrying(SAFELY),
            )
            if decorate_it:
                balancing = LoadBalancingClient.new_decorator(
                    group, service="http://lib.example/"
                )
                opened = decorate(
                    aiohttp.ClientSession(), added[0], balancing, added[1]
                )
                asked = "http://lib.example/secret"
            else:
                opened, asked = connected(group, *added), "/secret"
            async with opened, opened.get(asked) as response:
                assert 200 == response.status


async def test_websocket_gets_a_token(own):
    """Its handshake is a GET; the server of this test does not speak it."""
    async with refreshing(own) as opened:
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await opened.ws_connect("/socket")

    assert "Bearer t1" == dict(own.headers("Authorization"))["/socket"]


async def test_header_that_a_decorator_takes_off_stays_off(own):
    """Nothing is put on again."""

    @client_decorator
    async def bare(delegate, ctx, request):
        return await delegate.execute(ctx, request.replace(headers={}))

    async with refreshing(own, between=(bare,)) as opened, opened.get("/") as response:
        assert 200 == response.status

    assert ("/", None) == own.headers("Authorization")[-1]


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
        added = (*between, retrying(SAFELY), *between, key, *between)
        async with connected(own.url, *added) as opened:
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
