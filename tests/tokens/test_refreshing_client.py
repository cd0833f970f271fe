"""The client that sends tokens, and fetches others when they are refused."""

import asyncio
import functools
import io
import warnings

import aiohttp
import pytest
from calls import raised, raising
from chains import (
    SAFELY,
    bad_argument,
    chain,
    log_of,
    pass_on,
    refused,
    retrying,
    session,
)
from token_servers import BASE, Tokens, outcomes, refreshing_session, sent

from aioretry_smithy import (
    EndpointGroup,
    HedgingClient,
    RefreshingClient,
    RequestLog,
    RetryStrategy,
    capture_logs,
    client_decorator,
    is_unprocessed,
    unwrap,
)
from aioretry_smithy.testing import ScriptedTransport

with warnings.catch_warnings():
    # From 3.14 on aiohttp wants a header in its place.
    warnings.simplefilter("ignore", DeprecationWarning)
    AUTH = aiohttp.BasicAuth("me", "pw")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
class TestOwnCredentials:
    """Whoever brings credentials gets no token, and no fetch."""

    @pytest.mark.parametrize(
        ("settings", "url", "options"),
        [
            ({}, "/", {"headers": {"authorization": "mine"}}),
            ({}, "/", {"auth": AUTH}),
            ({}, "http://me:pw@localhost/", {}),
            ({"headers": {"Authorization": "mine"}}, "/", {}),
            ({"auth": AUTH}, "/", {}),
        ],
    )
    async def test_they_win(self, settings, url, options):
        """Of the request, the URL or the session; their 401 is the caller's."""
        tokens = Tokens()
        async with refreshing_session(tokens, answers=[401], **settings) as opened:
            response = await opened.get(url, **options)

        assert 401 == response.status
        assert 0 == tokens.asked

    async def test_those_of_a_session_go_to_its_own_origin_alone(self):
        """Another host that is named gets the token; without a base, none does."""
        own = {"hosts": ["other.example"]}
        for base, expected in ((BASE, "Bearer token-1"), (None, None)):
            transport = ScriptedTransport([200])
            tokens = Tokens()
            added = tokens.decorator(**own)
            async with session(transport, added, base_url=base, auth=AUTH) as opened:
                await opened.get("https://other.example/")
            assert [expected] == sent(transport)

    async def test_other_header_stands_beside_them(self):
        """Both are refused by aiohttp for ``Authorization`` alone."""
        tokens = Tokens()
        transport = ScriptedTransport([200, 200])
        added = tokens.decorator(header="X-Api-Key", scheme=None)
        async with session(transport, added, base_url=BASE, auth=AUTH) as opened:
            await opened.get("/")
            await opened.get("/", headers={"x-api-key": "mine"})

        assert ["token-1", "mine"] == sent(transport, "X-Api-Key")

    async def test_context_made_by_hand_has_no_session(self):
        """A client is tested alone, too."""
        tokens = Tokens()
        client = tokens.decorator(hosts=["localhost"])(ScriptedTransport([200]))

        @client_decorator
        async def alone(delegate, ctx, request):
            return await client.execute(ctx, request)

        async with session([], alone, base_url=BASE) as opened:
            assert 200 == (await opened.get("/")).status


class TestStrangers:
    """Servers that are not the session's own get no token."""

    async def test_other_origin_gets_none(self):
        """Its 401 fetches none."""
        tokens = Tokens()
        transport = ScriptedTransport([401])
        async with refreshing_session(tokens, answers=transport) as opened:
            assert 401 == (await opened.get("http://other.example/")).status

        assert [None] == sent(transport)
        assert 0 == tokens.asked

    async def test_group_gets_tokens(self):
        """One for each of its endpoints; a second request stays at the endpoint."""
        group = EndpointGroup.of("http://a.example", "http://b.example")
        for outside in ((), (retrying(SAFELY),)):
            tokens = Tokens()
            added = outside
            async with refreshing_session(tokens, *added, base_url=group) as opened:
                assert [200] * 4 == await outcomes(opened, 4)
                tokens.expire()
                response = await opened.get("/")
                log = RequestLog.of(response)
            assert 200 == response.status
            if outside:
                first, second = log.children
                assert first.endpoint == second.endpoint
            assert [0, 0] == [each.in_flight for each in group.states.values()]

    async def test_401_of_an_endpoint_that_is_not_named_is_the_caller_s(self):
        """It is a stranger, though of the group."""
        group = EndpointGroup.of("http://a.example")
        own = {"hosts": ["http://b.example"]}
        # Outside of retries the endpoint is chosen after the token was fetched.
        for inside, asked in (((), 0), ((retrying(SAFELY),), 1)):
            tokens = Tokens()
            async with refreshing_session(
                tokens, inside=inside, answers=[401], base_url=group, own=own
            ) as opened:
                assert 401 == (await opened.get("/")).status
            assert asked == tokens.asked


class TestBodies:
    """What cannot be sent twice is not."""

    async def test_body_that_is_spent_gets_its_401(self):
        """The next call fetches a token first."""
        tokens = Tokens()

        async def chunks():
            yield b"tea"

        async with refreshing_session(tokens) as opened:
            await opened.get("/")
            tokens.expire()
            response = await opened.post("/", data=chunks())
            assert 401 == response.status
            assert [200] == await outcomes(opened, 1)
            assert 3 == tokens.asked

    @pytest.mark.parametrize("body", [{"json": {"tea": 1}}, {"data": b"tea"}])
    async def test_body_in_memory_is_sent_again(self, body):
        """A file too."""
        tokens = Tokens()
        async with refreshing_session(tokens) as opened:
            await opened.get("/")
            tokens.expire()
            assert 200 == (await opened.post("/", **body)).status
            tokens.expire()
            assert 200 == (await opened.post("/", data=io.BytesIO(b"tea"))).status


def test_tokens_belong_to_a_loop():
    """One decorator in two loops: each has a token of its own."""
    tokens = Tokens(takes=0.0)
    added = tokens.decorator()

    async def main():
        async with session([tokens.answer] * 2, added, base_url=BASE) as opened:
            return await outcomes(opened, 2)

    assert [[200, 200], [200, 200]] == [asyncio.run(main()) for _ in range(2)]
    assert 2 == tokens.asked


class TestSettings:
    """What can be chosen, and what is refused."""

    @pytest.mark.parametrize(
        "fetch", [None, "token", 7, lambda user: user, int.from_bytes]
    )
    def test_fetch_takes_no_arguments(self, fetch):
        """It is a function."""
        expected = "an async function without arguments"
        with pytest.raises(
            ValueError, match=rf"\Afetch: .* \(expected: {expected}\)\Z"
        ):
            RefreshingClient.new_decorator(fetch)

    @pytest.mark.parametrize(
        "settings",
        [
            {"fetch": "hunter2"},
            {"fetch": b"hunter2"},
            {"fetch": ("me", "hunter2")},
            {"fetch": Tokens().fetch, "scheme": "Bearer hunter2"},
        ],
    )
    def test_token_in_a_wrong_place_is_not_shown(self, settings):
        """Errors are logged, and a token is a secret wherever it is written."""
        with pytest.raises(ValueError, match=r"^(fetch|scheme): <") as caught:
            RefreshingClient.new_decorator(**settings)

        assert "hunter2" not in str(caught.value)

    def test_fetch_is_not_called_yet(self):
        """A coroutine runs once; it is closed, so nobody warns of it."""
        with pytest.raises(ValueError, match=r"\Afetch: "):
            RefreshingClient.new_decorator(Tokens().fetch())

    def test_fetch_that_does_not_tell_its_arguments_is_taken(self):
        """Some that are written in C."""
        assert RefreshingClient.new_decorator(dict)

    @pytest.mark.parametrize("scheme", ["", "Bearer ", "Be\narer", 7])
    def test_scheme_is_a_word(self, scheme):
        """The blank after it is ours."""
        with bad_argument("scheme", scheme, "a word such as 'Bearer', or None"):
            Tokens().decorator(scheme=scheme)

    @pytest.mark.parametrize("on", [401, "401", [200], [600], [None]])
    def test_statuses_are_those_of_failures(self, on):
        """A success refuses no token."""
        with bad_argument("on", on, "a collection of integers in [400, 599]"):
            Tokens().decorator(on=on)

    def test_one_status_is_needed(self):
        """Or no token would ever be refreshed."""
        with bad_argument("on", [], "at least one status"):
            Tokens().decorator(on=[])

    async def test_it_is_found_and_described(self):
        """With its settings; no token is shown."""
        tokens = Tokens()
        async with session([], tokens.decorator(hosts=["a.example"])) as opened:
            found = unwrap(opened, RefreshingClient)
        text = (
            "RefreshingClient(fetch=Tokens.fetch, on=[401], header='Authorization',"
            " scheme='Bearer', hosts=('a.example',))"
        )

        assert text == found.describe()
        assert "scheme='Bearer')" in chain([], tokens.decorator()).describe()

    def test_arguments_of_a_partial_are_not_shown(self):
        """They may be the password that the fetch needs."""
        fetch = functools.partial(Tokens.fetch, "S3CRET")
        row = RefreshingClient.new_decorator(fetch)

        assert "fetch=partial," in chain([], row).describe()


CHAINS = pytest.mark.parametrize("between", [(), (pass_on,)], ids=["own", "foreign"])


class TestLog:
    """Inside retries each request has a log; no retry is counted."""

    async def log(self, *outside, inside=(), **settings):
        tokens = Tokens(takes=0.5)
        async with refreshing_session(tokens, *outside, inside=inside) as opened:
            await opened.get("/")
            tokens.expire()
            async with opened.get("/", **settings) as response:
                return RequestLog.of(response)

    @CHAINS
    async def test_each_request_is_shown(self, between):
        """The first one with its 401 and the wait for the token."""
        log = await self.log(*between, retrying(SAFELY), inside=between)

        first, second = log.children
        assert (401, 0.5, "token") == (
            first.response_status,
            first.delay,
            first.delay_source,
        )
        assert (200, None) == (second.response_status, second.delay)
        assert (2, 200) == (log.total_attempts, log.response_status)
        assert "Bearer token-3" == second.request_headers["Authorization"]
        assert "token-" not in log.render() + str(log.to_dict())
        assert (
            "401 Unauthorized   0.000 s   then waited 0.500 s (token)" in log.render()
        )

    async def test_second_failure_may_have_been_processed(self):
        """The server has answered the first request."""
        answers = [200, 401, refused()]
        added = retrying(RetryStrategy.never())
        async with refreshing_session(Tokens(), added, answers=answers) as opened:
            await opened.get("/")
            with pytest.raises(aiohttp.ClientConnectorError) as caught:
                await opened.post("/")

        assert not is_unprocessed(caught.value)

    @pytest.mark.parametrize("is_known", [False, True], ids=["first", "second"])
    @pytest.mark.parametrize(
        "outside",
        [(), (pass_on,), (retrying(SAFELY),), (HedgingClient.new_decorator(60.0),)],
        ids=["alone", "foreign", "retries", "hedges"],
    )
    async def test_cancelled_while_it_waits_ends_its_log(self, outside, is_known):
        """Whoever waits for that hears of it, as at each other wait."""
        tokens = Tokens(takes=5.0)
        with capture_logs() as logs:
            async with refreshing_session(tokens, *outside) as opened:
                if is_known:
                    await opened.get("/")
                    tokens.expire()
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.5):
                        await opened.get("/")
        log = logs[-1]
        async with asyncio.timeout(1.0):
            for each in (log, *log.children):
                assert each is await each.when_complete()

        assert all(each.is_complete for each in (log, *log.children))
        if not is_known:
            assert "CancelledError" == log.response_cause_type
            assert (0.5, False) == (log.duration, log.sent)

    async def test_custom_header_is_hidden(self):
        """It is a secret whatever it is called."""
        tokens = Tokens()
        added = (tokens.decorator(header="X-Shop", scheme=None), retrying(SAFELY))
        log = await log_of(session([200], *added, base_url=BASE), "/")

        assert "token-1" == log.children[0].request_headers["X-Shop"]
        assert "token-1" not in str(log.to_dict())


@pytest.mark.parametrize(
    "error",
    [
        raised(403),
        raised(401, kind=aiohttp.ClientHttpProxyError),
        # Of http://example.com, which is no server of ours.
        raised(401),
    ],
    ids=["another status", "a proxy's", "a stranger's"],
)
async def test_what_refuses_no_token_of_ours_fetches_none(error):
    """It is the caller's."""
    tokens = Tokens()
    async with refreshing_session(tokens, answers=[error]) as opened:
        with pytest.raises(aiohttp.ClientResponseError) as caught:
            await opened.get("/")

    assert (error.status, 1) == (caught.value.status, tokens.asked)


async def test_body_that_cannot_be_sent_again_gets_its_refusal():
    """The next call has another token."""

    class Unseekable(io.BytesIO):
        def seekable(self):
            return False

    tokens = Tokens()
    async with refreshing_session(tokens, inside=[raising]) as opened:
        await opened.get("/")
        tokens.expire()
        with pytest.raises(aiohttp.ClientResponseError):
            await opened.post("/", data=Unseekable(b"once"))
        response = await opened.get("/")

    assert 200 == response.status
