"""Connections go to the address of an endpoint; all else goes by its name.

In brackets: the case of ``research/endpoints.md``.
"""

import asyncio

import aiohttp
import pytest
from addressed import (
    HOSTS,
    NAME,
    RETRIES,
    ROUND_ROBIN,
    Servers,
    in_flight,
    resolving,
    text_of,
    texts_of,
)
from chains import connected, twice
from yarl import URL

from aioretry_smithy import (
    Endpoint,
    EndpointGroup,
    LoadBalancingClient,
    RequestLog,
    client_decorator,
    decorate,
)

# What the server sees, and what the caller


async def test_request_goes_to_the_address_with_the_name_as_host(servers):
    """The Host header is the name's, with its port (20, 30)."""
    async with servers.session() as client, client.get("/orders?a=1") as response:
        text = await response.text()

    assert "127.0.0.1" == text
    assert [(f"{NAME}:{servers.port}", "/orders?a=1")] == [
        (each.host, each.path) for each in servers.seen
    ]
    assert servers.url() / "orders" % {"a": "1"} == response.url
    assert response.url == response.request_info.real_url == response.real_url


async def test_host_header_has_no_default_port():
    """A port that goes without saying is not said (20)."""
    hosts = []

    async def note(request, handler):
        hosts.append(request.headers["Host"])
        raise aiohttp.ClientConnectionError("not sent")

    group = EndpointGroup.of(Endpoint("http://orders.test:80", address="127.0.0.1"))
    async with connected(group, middlewares=[note]) as client:
        with pytest.raises(aiohttp.ClientConnectionError):
            await client.get("/orders")

    assert ["orders.test"] == hosts


async def test_host_header_of_a_server_with_a_name_of_its_own(servers):
    """Each has its own, since the URL is its own (15, 16, 17, 21)."""
    group = EndpointGroup.of(
        servers.url("127.0.0.1") / "v1", servers.url("127.0.0.2"), selection=ROUND_ROBIN
    )
    async with connected(group, RETRIES) as client:
        for _ in range(2):
            await text_of(client, "orders", params={"a": "ä b"})

    asked = {(each.host, each.path) for each in servers.seen}
    assert {
        (f"127.0.0.1:{servers.port}", "/v1/orders?a=%C3%A4+b"),
        (f"127.0.0.2:{servers.port}", "/orders?a=%C3%A4+b"),
    } == asked


async def test_prefix_and_query_are_those_of_the_url(servers):
    """Only the host is another for the connection (15, 16, 17)."""
    prefixed = [Endpoint(servers.url() / "v1" / "", address=host) for host in HOSTS[:2]]
    async with connected(EndpointGroup.of(*prefixed, selection=ROUND_ROBIN)) as client:
        for path in ("orders", "/orders", "/a%2Fb"):
            await text_of(client, path, params=[("a", "1"), ("a", "2")])

    assert [
        "/v1/orders?a=1&a=2",
        "/v1/orders?a=1&a=2",
        "/v1/a%2Fb?a=1&a=2",
    ] == [each.path for each in servers.seen]


async def test_callers_own_host_header_wins(servers):
    """It is sent as it is given, to the address (22)."""
    async with servers.session() as client:
        await text_of(client, headers={"Host": "shop.test"})

    assert ["shop.test"] == [each.host for each in servers.seen]


async def test_absolute_url_of_the_service_is_balanced(servers):
    """Also with the scheme of websockets, which is the same (19)."""
    group = servers.group(selection=ROUND_ROBIN)
    async with connected(group, RETRIES) as client:
        for _ in range(4):
            await text_of(client, servers.url() / "x")

    assert [2, 2] == [len(servers.to(host)) for host in servers.hosts]


async def test_ipv6_address_is_connected_to():
    """Its brackets are those of a URL."""
    if not await _has_ipv6():
        pytest.skip("no IPv6 here")
    async with Servers("::1") as servers, servers.session() as client:
        await text_of(client)

    assert [f"{NAME}:{servers.port}"] == [each.host for each in servers.seen]


async def _has_ipv6():
    try:
        server = await asyncio.start_server(lambda *_: None, "::1", 0)
    except OSError:
        return False
    server.close()
    return True


async def test_failure_names_the_address_and_not_the_service():
    """Of a connection that was refused; the address is what is to be looked at."""
    async with Servers("127.0.0.1") as servers:
        group = EndpointGroup.of(
            Endpoint(servers.url(), address="127.0.0.2"), outlier_detection=None
        )
    async with connected(group) as client:
        with pytest.raises(aiohttp.ClientConnectorError, match=r"127\.0\.0\.2"):
            await client.get("/orders")


async def test_tracers_see_the_address_on_the_wire(servers):
    """The begin of a call names the service, its headers go to the address."""
    seen = []
    trace = aiohttp.TraceConfig()

    async def note(session, context, params):
        seen.append((type(params).__name__, params.url.host))

    trace.on_request_start.append(note)
    trace.on_request_headers_sent.append(note)
    async with servers.session(trace_configs=[trace]) as client:
        await text_of(client)

    assert [
        ("TraceRequestStartParams", NAME),
        ("TraceRequestHeadersSentParams", "127.0.0.1"),
    ] == seen


# Where it goes


async def test_calls_one_after_another_are_spread_over_a_name():
    """Though aiohttp would send all of them over the first connection."""
    async with Servers(*HOSTS) as servers:
        resolver = resolving(*HOSTS)
        group = EndpointGroup.dns(
            servers.url(), resolver=resolver, selection=ROUND_ROBIN
        )
        async with connected(group, RETRIES) as client:
            for _ in range(30):
                await text_of(client)

    assert [10, 10, 10] == [len(servers.to(host)) for host in HOSTS]
    assert {f"{NAME}:{servers.port}"} == {each.host for each in servers.seen}


async def test_address_that_was_removed_gets_no_new_request():
    """What is under way there ends, over a connection that is kept (112)."""
    async with Servers(*HOSTS[:2]) as servers:
        resolver = resolving(*HOSTS[:2])
        group = EndpointGroup.dns(
            servers.url(),
            resolver=resolver,
            refresh=(0.05, 0.05),
            selection=ROUND_ROBIN,
        )
        async with connected(group, RETRIES) as client:
            await texts_of(client, 2)
            late = [asyncio.create_task(text_of(client, "/late")) for _ in range(2)]
            await servers.arrived(4)
            resolver.answer.remove("127.0.0.2")
            asked = resolver.asked
            while resolver.asked == asked:
                await asyncio.sleep(0.01)
                await text_of(client)
            await asyncio.sleep(0.01)
            before = len(servers.to("127.0.0.2"))
            await texts_of(client, 10)
            servers.gate.set()

            assert {*HOSTS[:2]} == {*await asyncio.gather(*late)}
            assert before == len(servers.to("127.0.0.2"))


async def test_websocket_goes_to_the_chosen_endpoint(servers):
    """It is under way there until it is closed (29)."""
    group = servers.group(selection=ROUND_ROBIN)
    async with connected(group, RETRIES) as client:
        said = set()
        for url in ("/ws", servers.url(scheme="ws") / "ws"):
            async with client.ws_connect(url) as connection:
                said.add(await connection.receive_str())
                busy = in_flight(group)

        assert {*servers.hosts} == said
        assert 1 == sum(busy)
        assert [0, 0] == in_flight(group)


# Middlewares, and decorators further in


def noting(seen, name):
    """Make a middleware that notes what it sees before and after."""

    async def note(request, handler):
        seen.append((name, request.url.host, request.server_hostname))
        try:
            return await handler(request)
        finally:
            seen.append((name, request.url.host, request.server_hostname))

    return note


@pytest.mark.parametrize("own", [None, True])
async def test_middlewares_of_the_caller_run_once_and_see_the_service(own, servers):
    """A request's own replace those of the session, as without a group (31)."""
    seen = []
    outer, inner = noting(seen, "outer"), noting(seen, "inner")
    options = {} if own is None else {"middlewares": (noting(seen, "own"),)}
    async with servers.session(middlewares=(outer, inner)) as client:
        await text_of(client, **options)

    names = ["outer", "inner", "inner", "outer"] if own is None else ["own", "own"]
    assert [(name, NAME, None) for name in names] == seen
    assert ["1"] == servers.asked


async def test_middleware_that_sends_twice_never_sees_the_address(servers):
    """What it sends the second time is what it got (31)."""
    hosts = []

    async def again(request, handler):
        hosts.append(request.url.host)
        (await handler(request)).release()
        hosts.append(request.url.host)
        return await handler(request)

    async with servers.session(middlewares=[again]) as client:
        await text_of(client)

    assert [NAME, NAME] == hosts
    assert ["1", "1"] == servers.asked


async def test_middleware_that_goes_elsewhere_is_let(servers):
    """Its URL is no longer that of the service."""

    async def elsewhere(request, handler):
        request.url = request.url.with_host("127.0.0.2")
        return await handler(request)

    async with servers.session(middlewares=[elsewhere]) as client:
        await text_of(client)

    assert ["2"] == servers.asked


async def test_digest_credentials_hold_for_all_addresses(servers):
    """The nonce of one serves for the other, as behind a balancer (32)."""
    digest = aiohttp.DigestAuthMiddleware("ann", "secret")
    group = servers.group(selection=ROUND_ROBIN)
    async with connected(group, RETRIES, middlewares=[digest]) as client:
        for _ in range(4):
            async with client.get("/digest") as response:
                assert 200 == response.status

    assert {*servers.hosts} == {each.at for each in servers.seen}
    assert 5 == len(servers.seen)


async def test_decorator_further_in_that_sends_twice_stays_at_the_endpoint(servers):
    """One choice for one attempt; nothing is left under way."""
    group = servers.group(selection=ROUND_ROBIN)
    async with connected(group, twice, RETRIES) as client:
        for _ in range(2):
            await text_of(client)

    assert servers.asked in (["1", "1", "2", "2"], ["2", "2", "1", "1"])
    assert [0, 0] == in_flight(group)


async def test_decorator_that_derives_contexts_stays_at_the_endpoint(servers):
    """Contexts of its own change nothing of where the request goes."""

    @client_decorator
    async def both(delegate, ctx, request):
        (await delegate.execute(ctx.derive(request), request)).close()
        return await delegate.execute(ctx.derive(request), request)

    group = servers.group()
    async with (
        connected(group, both, RETRIES) as client,
        client.get("/orders") as response,
    ):
        log = RequestLog.of(response)

    assert ["1", "1"] == servers.asked
    assert "127.0.0.1" == str(log.endpoint).partition(":")[0]
    assert [0, 0] == in_flight(group)


@pytest.mark.parametrize("is_absolute", [False, True])
async def test_decorator_further_in_may_change_the_path(is_absolute, servers):
    """A URL of the same origin goes to the same endpoint."""

    @client_decorator
    async def moved(delegate, ctx, request):
        url = request.url.with_path("/moved")
        url = url if is_absolute else url.relative()
        return await delegate.execute(ctx, request.replace(url=url))

    async with connected(servers.group(), moved, RETRIES) as client:
        await text_of(client)

    assert [("127.0.0.1", "/moved")] == [(each.at, each.path) for each in servers.seen]


async def test_decorator_further_in_may_send_to_another_origin(servers):
    """That is not the group's, whatever its address."""

    @client_decorator
    async def moved(delegate, ctx, request):
        url = servers.url("127.0.0.2") / "other"
        return await delegate.execute(ctx, request.replace(url=url))

    async with connected(servers.group(), moved, RETRIES) as client:
        await text_of(client)

    assert [("127.0.0.2", "/other", f"127.0.0.2:{servers.port}")] == [
        (each.at, each.path, each.host) for each in servers.seen
    ]


async def test_calls_of_a_decorator_further_in_are_calls_of_their_own(servers):
    """What it asks another service on the way ends no visit of the endpoint."""
    group = servers.group()

    @client_decorator
    async def asking(delegate, ctx, request):
        if "X-Inner" not in request.headers:
            headers = {"X-Inner": "1"}
            await text_of(client, servers.url("127.0.0.2") / "token", headers=headers)
            await text_of(client, "/inner", headers=headers)
            busy.append(in_flight(group))
        return await delegate.execute(ctx, request)

    busy = []
    async with connected(group, asking, RETRIES) as client:
        await text_of(client)

    assert ["/token", "/inner", "/orders"] == [each.path for each in servers.seen]
    assert [[1, 0], [0, 0]] == [*busy, in_flight(group)]


async def test_session_of_the_callers_own_is_balanced_in_place(servers):
    """decorate() brings the middleware, too, and undecorated it is gone."""
    noted = []
    client = aiohttp.ClientSession(servers.url(), middlewares=[noting(noted, "own")])
    decorate(client, LoadBalancingClient.new_decorator(servers.group()))
    async with client:
        await text_of(client)

    assert ["1"] == servers.asked
    assert [NAME, NAME] == [host for _, host, _ in noted]


async def test_two_groups_with_equal_endpoints_are_two(servers):
    """Each has a state of its own, and connections alike."""
    groups = [servers.group(), servers.group()]
    async with connected(groups[0]) as one, connected(groups[1]) as other:
        await text_of(one)
        await text_of(other)

    assert ["1", "1"] == servers.asked
    assert [0, 0, 0, 0] == [*in_flight(groups[0]), *in_flight(groups[1])]


async def test_request_class_of_the_callers_own_serves(servers):
    """What follows hops is made of it, and hears of every one."""

    class Own(aiohttp.ClientRequest):
        made = 0

        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            Own.made += 1

    async with servers.session(request_class=Own) as client:
        await text_of(client, URL("/see").update_query(to="/x"))

    assert 2 == Own.made
    assert ["1", "1"] == servers.asked


async def test_mock_in_place_of_aiohttp_is_balanced_too(aioresponses_mock):
    """It sees the URL of the service, whatever the address."""
    group = EndpointGroup.of(Endpoint("http://orders.test", address="127.0.0.1"))
    aioresponses_mock.get("http://orders.test/x", body="mocked")
    async with connected(group, RETRIES) as client, client.get("/x") as response:
        log = RequestLog.of(response)
        text = await response.text()

    assert ("mocked", "127.0.0.1:80") == (text, str(log.endpoint))
    assert [0] == in_flight(group)
