"""Keys and tokens stay at home: redirects, middlewares, strangers, files."""

import pytest
from chains import SAFELY, connected, pass_on, retrying
from token_servers import refreshing

from aioretry_smithy import IdempotencyKeyClient

CHAINS = pytest.mark.parametrize("between", [(), (pass_on,)], ids=["own", "foreign"])


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
