"""Redirects stay in the group, or leave it; proxies find addresses by themselves.

In brackets: the case of ``research/endpoints.md``.
"""

import asyncio
import logging

import aiohttp
import pytest
from addressed import (
    HOSTS,
    IN_ORDER,
    NAME,
    RETRIES,
    ROUND_ROBIN,
    Servers,
    in_flight,
    resolving,
    text_of,
    texts_of,
)
from chains import connected, log_of, now
from fault_server import End, FaultServer, answer, cut
from yarl import URL

from aioretry_smithy import (
    DynamicEndpointGroup,
    Endpoint,
    EndpointGroup,
    OutlierDetection,
    RequestLog,
    RetryConfig,
    request_options,
)


def see(to, status=302):
    """Return the path that redirects to a URL."""
    return URL("/see").update_query(to=str(to), status=status)


# Within the group


async def test_relative_redirect_stays_at_the_endpoint(servers):
    """Each hop at the same one, though another would have its turn."""
    # Case 35.
    async with connected(servers.group(selection=ROUND_ROBIN), RETRIES) as client:
        for _ in range(2):
            async with client.get(see("/x")) as response:
                assert servers.url() / "x" == response.url

    assert servers.asked in (["1", "1", "2", "2"], ["2", "2", "1", "1"])
    assert {f"{NAME}:{servers.port}"} == {each.host for each in servers.seen}


@pytest.mark.parametrize("name", [NAME, NAME.upper()])
async def test_absolute_redirect_to_the_service_stays_in_the_group(name, servers):
    """There is no other way to it: nobody else knows the name."""
    # Case 36.
    group = servers.group()
    url = f"http://{name}:{servers.port}/x"
    async with connected(group, RETRIES) as client, client.get(see(url)) as response:
        log = RequestLog.of(response)

    assert ["1", "1"] == servers.asked
    assert f"127.0.0.1:{servers.port}" == str(log.endpoint)
    assert [0, 0] == in_flight(group)


async def test_history_and_texts_show_the_service(servers):
    """No address anywhere, but on the wire (42)."""
    servers.statuses["127.0.0.1"] = 404
    async with servers.session() as client, client.get(see("/x")) as response:
        history = [each.url.host for each in response.history]
        with pytest.raises(aiohttp.ClientResponseError) as caught:
            response.raise_for_status()

    assert [NAME] == history
    assert f"{servers.url()}x" in str(caught.value)
    assert "127.0.0.1" not in str(caught.value)


async def test_endless_redirects_say_the_service(servers):
    """As they do without a group (42)."""
    async with servers.session() as client:
        with pytest.raises(aiohttp.TooManyRedirects) as caught:
            await client.get(see("/see?to=/see"), max_redirects=2)

    assert str(servers.url()) in str(caught.value)


@pytest.mark.parametrize("status", [307, 308])
async def test_redirect_that_keeps_the_method_keeps_the_body(status, servers):
    """It goes to the same endpoint, whole (39)."""
    async with servers.session() as client:
        url = see("/x", status)
        async with client.post(url, data=b"an order") as response:
            assert 200 == response.status

    assert [("1", "POST", b"an order")] * 2 == [
        (digit, each.method, each.body)
        for digit, each in zip(servers.asked, servers.seen, strict=True)
    ]


# To others


SECRETS = {"Authorization": "Bearer secret", "Cookie": "sid=secret"}


@pytest.mark.parametrize("status", [302, 307])
async def test_stranger_gets_nothing_of_the_service(status, servers, stranger):
    """Neither its name as Host, nor its cookies, nor its credentials (37)."""
    async with servers.session() as client:
        await text_of(client, "/cookie?sid=secret")
        headers = {"Authorization": "Bearer secret"}
        await text_of(client, see(stranger.url("127.0.0.1"), status), headers=headers)

    (seen,) = stranger.seen
    assert f"127.0.0.1:{stranger.port}" == seen.host
    assert (None, None, None) == (seen.cookie, seen.authorization, seen.name)
    assert "sid=secret" == servers.seen[-1].cookie


async def test_replicas_own_address_is_another_origin(servers):
    """It is followed, as aiohttp does, without cookies and credentials (38)."""
    group = servers.group()
    async with connected(group, RETRIES) as client:
        await text_of(client, "/cookie?sid=secret")
        url = servers.url("127.0.0.2") / "x"
        headers = {"Authorization": "Bearer secret"}
        async with client.get(see(url), headers=headers) as response:
            log = RequestLog.of(response)

    assert url == response.url
    assert ["1", "1", "2"] == servers.asked
    last = servers.seen[-1]
    assert (f"127.0.0.2:{servers.port}", None, None) == (
        last.host,
        last.cookie,
        last.authorization,
    )
    assert f"127.0.0.1:{servers.port}" == str(log.endpoint)


def own_urls(servers, **settings):
    """Make a group of servers with URLs of their own."""
    urls = map(servers.url, servers.hosts)
    return EndpointGroup.of(*urls, selection=ROUND_ROBIN, **settings)


GROUPS = {"addresses": Servers.group, "own URLs": own_urls}
kinds = pytest.mark.parametrize("make", GROUPS.values(), ids=GROUPS)


@kinds
async def test_slow_stranger_is_no_request_under_way(make, servers, stranger):
    """In flight ends where the request leaves, not where its answer comes."""
    group = make(servers)
    async with connected(group, RETRIES) as client:
        url = see(stranger.url("127.0.0.1") / "late")
        started = now()
        call = asyncio.create_task(text_of(client, url))
        await stranger.arrived(1)
        arrived_after = now() - started
        await asyncio.sleep(0.05)
        busy = in_flight(group)
        stranger.gate.set()
        await call
        latencies = [each.latency for each in group.states.values()]

    assert [[0, 0], [0, 0]] == [busy, in_flight(group)]
    (latency,) = (each for each in latencies if each is not None)
    assert latency <= arrived_after


@kinds
@pytest.mark.parametrize("status", [500, 503, 404])
async def test_failure_of_a_stranger_is_none_of_the_endpoint(
    make, status, servers, stranger
):
    """The endpoint has answered, with a redirect; so it is well."""
    stranger.statuses["127.0.0.1"] = status
    detection = OutlierDetection(consecutive_failures=1)
    group = make(servers, outlier_detection=detection)
    async with connected(group) as client:
        for _ in range(3):
            await text_of(client, see(stranger.url("127.0.0.1")))

    states = group.states.values()
    assert [None, None] == [each.reason for each in states]
    assert [0.0, 0.0] == [each.penalty for each in states]
    assert [0, 0] == in_flight(group)


@kinds
async def test_stranger_that_refuses_puts_nobody_out(make, servers):
    """It is no refusal of the endpoint."""
    group = make(servers)
    async with Servers("127.0.0.1") as gone:
        url = see(gone.url("127.0.0.1"))
    async with connected(group) as client:
        with pytest.raises(aiohttp.ClientConnectorError):
            await client.get(url)

    assert [None, None] == [each.reason for each in group.states.values()]
    assert [0, 0] == in_flight(group)


@kinds
async def test_call_that_is_given_up_at_a_stranger_gives_its_place_back(
    make, servers, stranger
):
    """Once, not twice."""
    group = make(servers)
    async with connected(group) as client:
        url = see(stranger.url("127.0.0.1") / "late")
        call = asyncio.create_task(text_of(client, url))
        await stranger.arrived(1)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)

    assert [0, 0] == in_flight(group)


async def test_stranger_may_send_back_to_the_service(servers, stranger):
    """The way back leads to the same endpoint."""
    group = servers.group()
    async with connected(group, RETRIES) as client:
        back = str(servers.url() / "back")
        text = await text_of(
            client, see(stranger.url("127.0.0.1") / "see" % {"to": back})
        )

    assert "127.0.0.1" == text
    assert ["/back"] == [each.path for each in servers.seen[1:]]
    assert [0, 0] == in_flight(group)


async def test_trial_that_is_redirected_to_a_stranger_has_succeeded(servers, stranger):
    """At once: the stranger may take as long as it likes."""
    detection = OutlierDetection(ejection_time=0.01, consecutive_failures=1)
    group = servers.group(outlier_detection=detection)
    servers.statuses["127.0.0.1"] = 503
    async with connected(group) as client:
        await text_of(client)
        first = next(iter(group.states.values()))
        assert "consecutive_failures" == first.reason
        await asyncio.sleep(0.02)
        url = see(stranger.url("127.0.0.1") / "late")
        call = asyncio.create_task(text_of(client, url))
        await stranger.arrived(1)

        assert None is first.reason
        stranger.gate.set()
        await call


# Cookies


async def test_cookie_of_one_replica_is_sent_to_the_next(servers):
    """They go by the name of the service; none is lost for its address."""
    # Cases 33 and 34.
    async with connected(servers.group(selection=ROUND_ROBIN), RETRIES) as client:
        await text_of(client, "/cookie?a=1")
        await texts_of(client, 2)
        jar = [(each.key, each["domain"]) for each in client.cookie_jar]

    assert [None, "a=1", "a=1"] == [each.cookie for each in servers.seen]
    assert 2 == len({*servers.asked})
    assert [("a", NAME)] == jar


async def test_cookie_of_a_failed_attempt_goes_with_the_next(servers):
    """As it does without a group (33)."""
    servers.statuses["127.0.0.1"] = 503

    async with servers.session() as client:
        await text_of(client, "/cookie?a=1")
        with request_options(retry=RetryConfig.standard()):
            text = await text_of(client)

    assert "127.0.0.2" == text
    assert [None, "a=1", "a=1"] == [each.cookie for each in servers.seen]


SERVICE = URL("http://orders.test:8080/")


@pytest.fixture
async def proxy(monkeypatch):
    """A proxy of plain HTTP, that answers by itself."""
    for name in ("http_proxy", "https_proxy", "no_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    async with FaultServer(then=answer(200, b"by proxy")) as server:
        yield server


def of_addresses(**settings):
    """Make a group of addresses behind the name."""
    return EndpointGroup.of(
        *(Endpoint(SERVICE, address=host) for host in HOSTS), **settings
    )


def dynamic(**settings):
    """Make a group of addresses that the program has set."""
    group = DynamicEndpointGroup(**settings)
    group.set_endpoints([Endpoint(SERVICE, address=host) for host in HOSTS])
    return group


def of_dns(**settings):
    """Make a group of the addresses of the name."""
    return EndpointGroup.dns(SERVICE, resolver=resolving(*HOSTS), **settings)


MAKERS = {"addresses": of_addresses, "dynamic": dynamic, "dns": of_dns}
each = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


def warnings_in(caplog):
    return [each.getMessage() for each in caplog.records if "proxy" in each.message]


# Where a proxy applies


async def of_request(group, proxy, monkeypatch):
    """Give the proxy with each request."""
    return connected(group, RETRIES), {"proxy": proxy.url}


async def of_session(group, proxy, monkeypatch):
    """Give the proxy to the session."""
    return connected(group, RETRIES, proxy=proxy.url), {}


async def of_environment(group, proxy, monkeypatch):
    """Give the proxy by the environment."""
    monkeypatch.setenv("http_proxy", str(proxy.url))
    return connected(group, RETRIES, trust_env=True), {}


WAYS = {"request": of_request, "session": of_session, "environment": of_environment}


@each
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
async def test_nothing_is_chosen_nor_rewritten(make, way, proxy, monkeypatch, caplog):
    """The proxy gets the name; one warning says so."""
    # Cases 40 and 41.
    group = make()
    session, options = await way(group, proxy, monkeypatch)
    async with session as client:
        for _ in range(3):
            async with client.get("orders?a=1", **options) as response:
                assert b"by proxy" == await response.read()
                log = RequestLog.of(response)

    assert [f"{SERVICE}orders?a=1"] * 3 == [each.target for each in proxy.requests]
    assert {b"orders.test:8080"} == {each.header("Host") for each in proxy.requests}
    assert None is log.endpoint
    assert SERVICE / "orders" % {"a": "1"} == response.url
    assert {0} == {0, *(state.in_flight for state in group.states.values())}
    (warning,) = warnings_in(caplog)
    assert f"endpoint group {group.name!r}: requests go through a proxy" in warning


async def test_name_is_not_asked_for(proxy):
    """Perhaps only the proxy knows it (40)."""
    resolver = resolving(*HOSTS)
    group = EndpointGroup.dns(SERVICE / "v1", resolver=resolver)
    async with connected(group, RETRIES) as client:
        await text_of(client, "orders", proxy=proxy.url)
        await text_of(client, SERVICE / "v1/orders", proxy=proxy.url)

    assert 0 == resolver.asked
    assert [f"{SERVICE}v1/orders"] * 2 == [each.target for each in proxy.requests]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("no_proxy", "orders.test"),
        ("http_proxy", "https://127.0.0.1:1"),
        ("http_proxy", ""),
        ("https_proxy", "http://127.0.0.1:1"),
    ],
)
async def test_proxy_that_does_not_apply_changes_nothing(
    name, value, proxy, monkeypatch, caplog
):
    """By the environment, which excepts the service or has none that serves (41)."""
    caplog.set_level(logging.WARNING, "aioretry_smithy")
    if name == "no_proxy":
        monkeypatch.setenv("http_proxy", str(proxy.url))
    monkeypatch.setenv(name, value)
    async with Servers("127.0.0.1") as servers:
        monkeypatch.setenv(name, value)
        async with servers.session(trust_env=True) as client:
            assert "127.0.0.1" == await text_of(client)

    assert [] == proxy.requests
    assert [] == [each for each in warnings_in(caplog) if "endpoint group" in each]


async def test_servers_with_urls_of_their_own_are_balanced(proxy, caplog):
    """The proxy gets these URLs (40)."""
    urls = ["http://a.test", "http://b.test/v1"]
    group = EndpointGroup.of(*urls, selection=IN_ORDER)
    async with (
        connected(group, RETRIES) as client,
        client.get("/orders", proxy=proxy.url) as response,
    ):
        log = RequestLog.of(response)

    assert ["http://a.test/orders"] == [each.target for each in proxy.requests]
    assert "a.test" == str(log.endpoint)
    assert [] == warnings_in(caplog)


async def test_several_names_with_addresses_are_balanced_by_name(proxy, caplog):
    """Only that the addresses are not used (40)."""
    group = EndpointGroup.of(
        Endpoint("http://a.test", address="127.0.0.2"),
        Endpoint("http://b.test", address="127.0.0.3"),
        selection=IN_ORDER,
    )
    async with connected(group, RETRIES) as client:
        await text_of(client, proxy=proxy.url)

    assert ["http://a.test/orders"] == [each.target for each in proxy.requests]
    assert 1 == len(warnings_in(caplog))


async def test_middleware_of_the_caller_may_bring_a_proxy(proxy):
    """Then the URL is not rewritten either."""

    async def through_proxy(request, handler):
        request.update_proxy(proxy.url, None, None)
        return await handler(request)

    group = EndpointGroup.of(Endpoint("http://a.test", address="127.0.0.2"))
    async with connected(group, RETRIES, middlewares=[through_proxy]) as client:
        if not hasattr(aiohttp.ClientRequest, "update_proxy"):
            pytest.skip("aiohttp has no such method any more")
        await text_of(client)

    assert ["a.test"] == [each.header("Host").decode() for each in proxy.requests]


# Errors of proxies


@pytest.fixture
async def closed():
    """The URL of a port where nobody listens."""
    async with FaultServer() as server:
        return server.url


async def test_proxy_that_refuses_counts_for_no_endpoint(closed):
    """It is all the same which endpoint is asked for: there is no hurry, either."""
    group = EndpointGroup.of("http://a.test", "http://b.test", selection=IN_ORDER)
    log = await log_of(connected(group, RETRIES), "/orders", proxy=closed)

    assert 10 == log.total_attempts
    assert {"backoff"} == {each.delay_source for each in log.children[:-1]}
    states = group.states.values()
    assert [None, None] == [state.reason for state in states]
    assert [0.0, 0.0] == [state.penalty for state in states]
    assert [0, 0] == [state.in_flight for state in states]


@pytest.mark.parametrize("then", [answer(503), cut(end=End.RESET)])
async def test_tunnel_that_a_proxy_refuses_counts_for_no_endpoint(proxy, then):
    """Nor does an answer of the proxy in place of a tunnel, or a cut connection."""
    proxy.then = then
    group = EndpointGroup.of("https://a.test", "https://b.test", selection=IN_ORDER)
    log = await log_of(connected(group, RETRIES), "/orders", proxy=proxy.url)

    assert {"backoff"} == {each.delay_source for each in log.children[:-1]}
    assert [None, None] == [state.reason for state in group.states.values()]
    assert [0.0, 0.0] == [state.penalty for state in group.states.values()]
