"""The client that gives calls a key: which, when, where it stands.

Where it may stand is the same for the client that sends tokens.
"""

import asyncio

import pytest
from chains import (
    SAFELY,
    after,
    bad_argument,
    chain,
    decorated,
    pass_on,
    retrying,
    session,
)
from token_servers import Tokens

from aioretry_smithy import (
    DecoratingClient,
    EndpointGroup,
    HedgingClient,
    HttpRequest,
    IdempotencyKeyClient,
    LoadBalancingClient,
    RetryConfig,
    SessionBuilder,
    client_decorator,
    decorate,
    request_options,
    rpc,
    smithy,
    unwrap,
)
from aioretry_smithy.testing import ScriptedTransport

BASE = "https://api.example.com"
HEADER = "Idempotency-Key"
CHAINS = pytest.mark.parametrize("between", [(), (pass_on,)], ids=["own", "foreign"])


def keyed(**settings):
    return IdempotencyKeyClient.new_decorator(**settings)


CLIENTS = {keyed: "IdempotencyKeyClient", Tokens().decorator: "RefreshingClient"}
"""The names of the clients that only the session's own servers meet."""

EACH_CLIENT = pytest.mark.parametrize("make", CLIENTS, ids=CLIENTS.values())


def hosts_of(make):
    return (
        f"the hosts that {CLIENTS[make]} acts on, since the session has neither"
        " base_url nor a group"
    )


def keys(transport, header=HEADER):
    return [each.headers.get(header) for each in transport.requests]


async def sent(method="POST", url="/orders", answers=None, decorators=(), **options):
    """Make a call with retries; return the keys that were sent."""
    settings = {"base_url": BASE, "client": keyed(), **options.pop("settings", {})}
    client = settings.pop("client")
    transport = ScriptedTransport(answers or [503, 503, 200])
    added = (*decorators, retrying(SAFELY), client)
    async with session(transport, *added, **settings) as opened:
        await opened.request(method, url, **options)
    return keys(transport, options.pop("header", HEADER))


class TestKeys:
    """One for each call, which makes retries possible."""

    @CHAINS
    async def test_all_attempts_have_the_same_key(self, between):
        """A POST is retried with it; the next call has another."""
        transport = ScriptedTransport([503, 503, 200, 200])
        added = (*between, retrying(SAFELY), *between, keyed(), *between)
        async with session(transport, *added, base_url=BASE) as opened:
            await opened.post("/orders")
            await opened.post("/orders")
        first, second, third, other = keys(transport)

        assert first == second == third != other
        assert 36 == len(first)

    async def test_header_may_have_another_name(self):
        """A request with it may be retried, also where the caller brings the key."""
        client = keyed(header="X-Order-Key", key=lambda ctx, request: "k")
        transport = ScriptedTransport([503, 200, 503, 200, 503])
        added = (retrying(SAFELY), client)
        async with session(transport, *added, base_url=BASE) as opened:
            await opened.post("/orders")
            await opened.post("/orders", headers={"x-order-key": "mine"})
            await opened.post("https://other.example/orders")

        assert ["k", "k", "mine", "mine", None] == keys(transport, "X-Order-Key")

    async def test_classifier_of_smithy_knows_it(self):
        """Whatever the header is called."""
        strategy = RetryConfig(
            smithy.StandardRetryStrategy(),
            classifiers=[*smithy.DEFAULT_CLASSIFIERS, smithy.only_idempotent],
        )
        for added, number in ((keyed(header="X-Order-Key"),), 2), ((), 1):
            transport = ScriptedTransport([503, 200])
            outer = retrying(strategy), *added
            async with session(transport, *outer, base_url=BASE) as opened:
                await opened.post("/orders")
            assert number == len(transport.requests)


class TestRepetitions:
    """A decorator outside that sends a call more than once."""

    async def test_other_request_gets_another(self):
        """By method, URL and body."""

        @client_decorator
        async def several(delegate, ctx, request):
            (await delegate.execute(ctx, request)).close()
            for changes in (
                {"url": f"{BASE}/other"},
                {"method": "PATCH"},
                {"json": {}},
                {"params": {"a": "1"}},
            ):
                await delegate.execute(ctx, request.replace(**changes))
            return await delegate.execute(ctx, request)

        transport = ScriptedTransport([200] * 6)
        added = (retrying(SAFELY), keyed(), several)
        async with session(transport, *added, base_url=BASE) as opened:
            await opened.post("/orders", json={"tea": 1})

        assert 6 == len({*keys(transport)})


class TestHedges:
    """No two requests with one key at the same time."""

    async def requests(self, *decorators, method="POST", options=None, **settings):
        transport = ScriptedTransport([after(1.0, 200)] * 2)
        added = (*decorators, keyed(**settings))
        async with session(transport, *added, base_url=BASE) as opened:
            await opened.request(method, "/orders", headers=options)
            await asyncio.sleep(2.0)
        return len(transport.requests)

    @CHAINS
    async def test_request_with_a_key_of_ours_is_not_hedged(self, between):
        """Servers refuse the second one, or carry it out."""
        added = (HedgingClient.new_decorator(0.1), *between, retrying(SAFELY), *between)

        assert 1 == await self.requests(*added)
        assert 1 == await self.requests(*added, method="PUT", methods=["PUT"])

    async def test_one_with_a_key_of_the_caller_s_is(self):
        """Who says that the server may see it twice, under the usual name or not."""
        added = HedgingClient.new_decorator(0.1), retrying(SAFELY)
        own = {"X-Key": "mine"}

        assert 2 == await self.requests(*added, options={HEADER: "mine"})
        assert 2 == await self.requests(*added, options=own, header="X-Key")
        assert 2 == await self.requests(*added, method="GET")

    async def test_block_that_says_so_wins(self):
        """It is meant for hedges too."""
        added = HedgingClient.new_decorator(0.1), retrying(SAFELY)

        with request_options(idempotent=True):
            assert 2 == await self.requests(*added)
        with request_options(attributes={"a": 1}):
            assert 1 == await self.requests(*added)


class TestStrangers:
    """Servers that are not the session's own get no key."""

    async def test_named_hosts_replace_the_own_origin(self):
        """Whatever the base URL is."""
        settings = {"client": keyed(hosts=["other.example"])}

        assert [None] == await sent(settings=settings)
        assert None not in await sent(url="https://other.example/", settings=settings)
        settings["base_url"] = None
        assert None not in await sent(url="https://other.example/", settings=settings)

    async def test_group_around_it_is_known_by_its_endpoint(self):
        """Where nothing retries, the balancing client stands outside."""
        group = EndpointGroup.of("http://a.example", "http://b.example")
        transport = ScriptedTransport([200, 200])
        async with session(transport, keyed(), base_url=group) as opened:
            await opened.post("/orders")
            await opened.post("http://c.example/orders")
        own, strange = keys(transport)

        assert None is not own
        assert None is strange

    async def test_group_of_a_library_s_session_is_its_own(self):
        """``decorate()`` finds it in the chain."""
        group = EndpointGroup.of("http://a.example")
        balancing = LoadBalancingClient.new_decorator(
            group, service="https://lib.example/v1"
        )
        transport = ScriptedTransport([200])
        async with SessionBuilder().build() as plain:
            pass
        opened = plain.__class__()
        async with decorate(opened, transport, balancing, keyed()):
            await opened.post("https://lib.example/v1/orders")

        assert None not in keys(transport)


class TestPlace:
    """It stands outside of what retries, in sessions that have an origin."""

    def test_inside_a_retrying_client_it_is_refused(self):
        """Each attempt would be another order."""
        expected = "a place around RetryingClient, not inside of it"
        for between in ((), (pass_on,)):
            builder = chain([], keyed(), *between, retrying(), base_url=BASE)
            with bad_argument("decorator", "IdempotencyKeyClient", expected):
                builder.describe()

    def test_inside_a_hedging_client_it_is_refused(self):
        """That would not know of the key, and send two with it at once."""
        expected = "a place inside of IdempotencyKeyClient, not around it"
        added = keyed(methods=["PUT"]), HedgingClient.new_decorator(0.1)
        with bad_argument("decorator", "HedgingClient", expected):
            chain([], *added, base_url=BASE).describe()

    @EACH_CLIENT
    async def test_without_an_origin_hosts_are_needed(self, make):
        """Or nobody would know who is a stranger."""
        with bad_argument("hosts", None, hosts_of(make)):
            decorated(SessionBuilder(), make()).build()
        await decorated(SessionBuilder(), make(hosts=["a.example"])).build().close()

    @EACH_CLIENT
    async def test_without_an_origin_none_is_decorated(self, make):
        """A session of somebody else's neither; it stays as it was."""
        async with SessionBuilder().build() as built:
            opened = type(built)()
        async with opened:
            with bad_argument("hosts", None, hosts_of(make)):
                decorate(opened, make())
            assert unwrap(opened, DecoratingClient) is None

    @EACH_CLIENT
    def test_functions_are_refused(self, make):
        """They have no headers."""
        with bad_argument("decorator", CLIENTS[make], "a decorator for functions"):
            rpc(make())(later)

    async def test_it_is_found_and_described(self):
        """With its settings."""
        client = keyed(header="X-Key", methods=["post"], key=named, hosts=["a.example"])
        async with session([], client) as opened:
            found = unwrap(opened, IdempotencyKeyClient)

        assert (
            "IdempotencyKeyClient(header='X-Key', methods=['POST'], key=named,"
            " hosts=('a.example',))"
        ) == found.describe()
        assert (
            "IdempotencyKeyClient(header='Idempotency-Key', methods=['PATCH', 'POST'])"
            in (chain([], keyed(), base_url=BASE).describe())
        )


def named(ctx, request):
    return "k"


async def later(ctx=None, request=None):
    """Take its time."""


class TestMistakes:
    """Bad arguments, and functions that make no key."""

    @EACH_CLIENT
    @pytest.mark.parametrize("header", ["", "X Key", "X\r\nY", None, 7])
    def test_header_is_the_name_of_one(self, make, header):
        """No blank and no line end."""
        with bad_argument("header", header, "a header name"):
            make(header=header)

    @pytest.mark.parametrize("methods", ["POST", [], ["PO ST"], [7], 7])
    def test_methods_are_a_collection(self, methods):
        """A text is none."""
        with bad_argument("methods", methods, 'a collection such as ["GET"], or None'):
            keyed(methods=methods)

    def test_methods_are_named(self):
        """None would promise too much."""
        with bad_argument("methods", None, 'a collection such as ["POST"]'):
            keyed(methods=None)

    def test_key_is_a_plain_function(self):
        """Neither a key nor an async function."""
        for key in ("k", later):
            expected = "a plain function of the context and the request, or None"
            with bad_argument("key", key, expected):
                keyed(key=key)

    @pytest.mark.parametrize(
        ("made", "what"),
        [
            ("", "a text"),
            ("S3CRET\r\nX: 1", "a text"),
            (7, "a int"),
        ],
    )
    async def test_function_that_makes_no_key_is_the_caller_s_mistake(self, made, what):
        """One attempt; the message does not show the key."""
        transport = ScriptedTransport([200])
        client = keyed(key=lambda ctx, request: made)
        added = (retrying(SAFELY), client)
        async with session(transport, *added, base_url=BASE) as opened:
            with pytest.raises(TypeError) as caught:
                await opened.post("/orders")

        assert [] == transport.requests
        assert what in str(caught.value)
        assert "S3CRET" not in str(caught.value)


async def test_one_decorator_serves_two_sessions():
    """Each with the origin of its own."""
    client = keyed()
    for base in ("http://a.example", "http://b.example"):
        transport = ScriptedTransport([200, 200])
        async with session(transport, client, base_url=base) as opened:
            await opened.post("/")
            await opened.post("http://a.example/")
        own, other = keys(transport)

        assert own is not None
        assert (base == "http://a.example") == (other is not None)


async def test_request_made_by_hand_gets_a_key():
    """A decorator further out may replace it."""

    @client_decorator
    async def by_hand(delegate, ctx, request):
        return await delegate.execute(ctx, HttpRequest("POST", f"{BASE}/other"))

    transport = ScriptedTransport([503, 200])
    added = (retrying(SAFELY), keyed(), by_hand)
    async with session(transport, *added, base_url=BASE) as opened:
        await opened.get("/orders")
    first, second = keys(transport)

    assert first == second != None  # noqa: E711
