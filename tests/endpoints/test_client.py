"""The client that balances, the URLs that it finds, and sessions of others.

Of the cases of endpoints.md (f): 15 to 19, 21.
"""

import contextvars

import aiohttp
import pytest
from balanced import IN_ORDER, ROUND_ROBIN, Fleet, call, group_of, state_of
from chains import after, now, raises_exactly, retrying
from group_servers import Servers, of
from yarl import URL

from aioretry_smithy import (
    Endpoint,
    EndpointGroup,
    EndpointSelectionStrategy,
    HedgingClient,
    HttpRequest,
    LoadBalancingClient,
    OutlierDetection,
    RequestLog,
    SessionBuilder,
    client_decorator,
    decorate,
)
from aioretry_smithy._endpoints.visit import note_hop
from aioretry_smithy.testing import ScriptedTransport

API = "https://api.example.com/v1"


def decorated(servers, *decorators, base_url=None):
    """Return a session of aiohttp's, decorated afterwards."""
    return decorate(aiohttp.ClientSession(base_url), servers.transport, *decorators)


@pytest.mark.parametrize(
    ("url", "asked"),
    [
        (f"{API}/orders?page=2#top", "http://a/v2/orders?page=2#top"),
        (URL(f"{API}/orders"), "http://a/v2/orders"),
        (API, "http://a/v2/"),
        (f"{API}?page=2", "http://a/v2/?page=2"),
        (f"{API}/", "http://a/v2/"),
        ("https://API.example.com:443/v1/a%2Fb", "http://a/v2/a%2Fb"),
        ("wss://api.example.com/v1/events", "http://a/v2/events"),
        ("/orders", "http://a/v2/orders"),
        (f"{API}/x/../y", "http://a/v2/y"),
    ],
)
async def test_urls_of_a_library_are_the_groups(url, asked):
    """Those that begin as it joins them: what comes after goes to an endpoint."""
    servers = Servers()
    balancing = LoadBalancingClient.new_decorator(of("a/v2"), service=API)
    async with decorated(servers, balancing) as client:
        assert 200 == await servers.get(client, url)

    assert [asked] == servers.urls


@pytest.mark.parametrize(
    "url",
    [
        "https://api.example.com/v10/orders",
        "https://api.example.com/",
        "http://api.example.com/v1/orders",
        "https://api.example.com:444/v1/orders",
        "https://other.example.com/v1/orders",
    ],
)
async def test_other_urls_pass(url):
    """Untouched and uncounted."""
    servers = Servers()
    group = of("a/v2")
    balancing = LoadBalancingClient.new_decorator(group, service=API)
    async with decorated(servers, balancing) as client:
        assert 200 == await servers.get(client, url)

    assert [url] == servers.urls
    assert [None] == [each.latency for each in group.states.values()]


async def test_what_is_no_url_passes():
    """For aiohttp to refuse."""
    servers = Servers()
    balancing = LoadBalancingClient.new_decorator(of("a"), service=API)
    async with decorated(servers, balancing) as client:
        assert isinstance(await servers.get(client, "http://[::1"), aiohttp.InvalidURL)
        assert isinstance(await servers.get(client, 7), TypeError)


async def test_absolute_urls_of_the_group_itself_are_its():
    """Where all its endpoints have one origin."""
    servers = Servers()
    balancing = LoadBalancingClient.new_decorator(of("a"), service=API)
    async with decorated(servers, balancing) as client:
        await servers.get(client, "http://a/orders")

    assert ["a"] == servers.asked
    assert ["http://a/orders"] == servers.urls


async def test_url_that_a_decorator_changes_stays_the_groups():
    """As long as it begins likewise."""

    @client_decorator
    async def turn(delegate, ctx, request):
        url = request.url
        return await delegate.execute(ctx, request.replace(url=url / "page"))

    servers = Servers()
    balancing = LoadBalancingClient.new_decorator(of("a"), service=API)
    async with decorated(servers, balancing, turn) as client:
        await servers.get(client, f"{API}/orders")

    assert ["http://a/orders/page"] == servers.urls


@pytest.mark.parametrize("url", [f"{API}/../x", URL(f"{API}/../x", encoded=True)])
async def test_dots_lead_out_of_the_service(url):
    """Resolved or not, as they come: the URL is that of another service."""
    servers = Servers()
    balancing = LoadBalancingClient.new_decorator(of("a/v2"), service=API)
    async with decorated(servers, balancing) as client:
        await servers.get(client, url)

    assert ["api.example.com"] == servers.asked


async def test_one_url_means_another_thing_to_another_session():
    """Both have one group, whose endpoints remember what they were asked for."""
    servers = Servers()
    group = of("a")
    services = ("https://api.example.com", API)
    for service in services:
        balancing = LoadBalancingClient.new_decorator(group, service=service)
        async with decorated(servers, balancing) as client:
            await servers.get(client, f"{API}/orders")

    assert ["http://a/v1/orders", "http://a/orders"] == servers.urls


async def test_relative_urls_go_to_the_group_without_a_service():
    """Whatever base the session has."""
    servers = Servers()
    balancing = LoadBalancingClient.new_decorator(of("a"))
    async with decorated(servers, balancing, base_url="http://x/") as client:
        await servers.get(client, "orders")
        await servers.get(client, "http://x/orders")

    assert ["http://a/orders", "http://x/orders"] == servers.urls


def test_client_describes_itself():
    """With the URL, where it has one."""
    group = of("a")
    builder = SessionBuilder().decorator(
        LoadBalancingClient.new_decorator(group, service=API)
    )
    plain = SessionBuilder().decorator(LoadBalancingClient.new_decorator(group))

    first = builder.describe().splitlines()[0]
    assert f"LoadBalancingClient({group!r}, service='{API}/')" == first
    assert f"LoadBalancingClient({group!r})" == plain.describe().splitlines()[0]


def test_client_shows_its_group():
    """And what tells its requests."""
    group = of("a")
    client = LoadBalancingClient.new_decorator(group, service=API)(Servers().transport)

    assert group is client.group
    assert client.service.key == group.name


def test_bad_arguments_are_refused():
    """Each with what to write."""
    group = EndpointGroup.of("http://a")
    with raises_exactly("group: 7 (expected: an EndpointGroup)"):
        LoadBalancingClient.new_decorator(7)
    with pytest.raises(ValueError, match=r"\Aservice: .*with a scheme"):
        LoadBalancingClient.new_decorator(group, service="api.example.com")
    with pytest.raises(ValueError, match=r"\Aservice: "):
        LoadBalancingClient.new_decorator(group, service=7)


@pytest.mark.parametrize(
    "again",
    [retrying(0.0), HedgingClient.new_decorator(1.0)],
    ids=["retries", "hedges"],
)
def test_place_around_what_sends_again_is_refused(again):
    """All attempts would go to one endpoint, which would learn nothing from them."""
    name = type(again(Servers().transport)).__name__
    balancing = LoadBalancingClient.new_decorator(of("a"))
    expected = f"a place inside of {name}, not around it"
    with raises_exactly(f"decorator: 'LoadBalancingClient' (expected: {expected})"):
        SessionBuilder().decorator(again).decorator(balancing).describe()


async def test_client_that_was_placed_by_hand_is_the_only_one():
    """Inside a retrying decorator of the user's own, each try is balanced."""

    @client_decorator
    async def twice(delegate, ctx, request):
        await delegate.execute(ctx.derive(request), request)
        return await delegate.execute(ctx.derive(request), request)

    group = of("a", "b", selection=EndpointSelectionStrategy.round_robin())
    servers = ScriptedTransport([200, 200])
    balancing = LoadBalancingClient.new_decorator(group)
    builder = SessionBuilder(group)
    for decorator in (servers, balancing, twice):
        builder.decorator(decorator)
    async with builder.build() as session:
        response = await session.get("/orders")

    log = RequestLog.of(response)
    assert 1 == builder.describe().count("LoadBalancingClient")
    assert ["a", "b"] == sorted(str(each.endpoint) for each in log.children)


class TestUrls:
    """The URLs of requests to servers with URLs of their own."""

    async def test_absolute_url_of_the_only_origin_is_balanced(self):
        """Case 19 for groups that are given: it stays as it is."""
        fleet = Fleet()
        group = EndpointGroup.of(
            *(Endpoint("http://a.example/v1", address=f"10.0.0.{n}") for n in (1, 2)),
            selection=ROUND_ROBIN,
        )
        async with fleet.session(group) as client:
            logs = [(await call(client, "http://A.example/x"))[1] for _ in range(2)]

        assert {"10.0.0.1:80", "10.0.0.2:80"} == {log.endpoint for log in logs}
        assert {"http://a.example/x"} == {
            str(each.url) for each in fleet.transport.requests
        }

    async def test_url_is_the_first_endpoints_until_one_is_chosen(self):
        """The root shows what the first attempt asked for."""
        seen = []

        @client_decorator
        async def look(delegate, ctx, request):
            seen.append(str(request.url))
            return await delegate.execute(ctx, request)

        fleet = Fleet(a=503)
        async with fleet.session(group_of("ab"), retrying(0.0), look) as client:
            _, log = await call(client)

        assert ["http://a.example/orders"] == seen
        assert "http://a.example/orders" == str(log.request_url)
        assert "http://b.example/orders" == str(log.children[1].request_url)

    async def test_bad_url_is_aiohttps_to_report(self):
        """It is no failure of an endpoint."""
        group = group_of("ab", outlier_detection=OutlierDetection(connect_failures=1))
        async with Fleet().session(group) as client:
            error, log = await call(client, "http://a:port/")

        assert ("InvalidUrlClientError", None) == (type(error).__name__, log.endpoint)


class TestRewritten:
    """Requests that users' decorators write anew."""

    async def test_url_outside_stays_the_groups_where_it_begins_as_shown(self):
        """By the first endpoint's URL, whichever is asked then."""

        @client_decorator
        async def rewrite(delegate, ctx, request):
            url = request.url.with_path(request.url.path + "/7")
            return await delegate.execute(ctx, request.replace(url=url))

        fleet = Fleet(a=503)
        group = EndpointGroup.of(
            "http://a.example/v1", "http://b.example/v2", selection=IN_ORDER
        )
        async with fleet.session(group, retrying(0.0), rewrite) as client:
            await call(client)

        assert ["http://a.example/v1/orders/7", "http://b.example/v2/orders/7"] == [
            str(each.url) for each in fleet.transport.requests
        ]

    async def test_request_made_by_hand_outside_is_balanced(self):
        """A path is the group's."""

        @client_decorator
        async def anew(delegate, ctx, request):
            return await delegate.execute(ctx, HttpRequest("GET", "/by-hand"))

        fleet = Fleet(a=503)
        async with fleet.session(group_of("ab"), retrying(0.0), anew) as client:
            _, log = await call(client)

        assert ["http://a.example/by-hand", "http://b.example/by-hand"] == [
            str(each.url) for each in fleet.transport.requests
        ]
        assert "b.example" == log.endpoint

    async def test_request_made_by_hand_inside_goes_to_the_one_chosen(self):
        """As its path has no host of its own."""

        @client_decorator
        async def anew(delegate, ctx, request):
            return await delegate.execute(ctx, HttpRequest("GET", "/by-hand"))

        fleet = Fleet(a=503)
        async with fleet.session(group_of("ab"), anew, retrying(0.0)) as client:
            _, log = await call(client)

        assert ["a", "b"] == fleet.asked
        assert "b.example" == log.endpoint


async def test_hop_in_a_context_that_outlives_a_request_is_none_of_it():
    """A task that began meanwhile may follow a redirect of its own."""
    contexts = []

    @client_decorator
    async def notice(delegate, ctx, request):
        contexts.append(contextvars.copy_context())
        return await delegate.execute(ctx, request)

    group = group_of("a")
    async with Fleet().session(group, notice) as client:
        async with client.get("/"):
            pass
        for host in ("a", "elsewhere"):
            contexts[0].run(note_hop, URL(f"http://{host}.example/"), contexts)

    assert 0 == state_of(group, "a").in_flight


async def test_calls_that_overlap_in_one_context_are_all_over():
    """In whatever order they are closed."""
    group = group_of("a")
    async with Fleet(a=after(3.0, 200)).session(group) as client:
        calls = [client._request("GET", "/") for _ in range(2)]
        for each in calls:
            each.send(None)
        begun = state_of(group, "a").in_flight
        for each in calls:
            each.close()
        async with client.get("/"):
            pass

    assert (2, 0) == (begun, state_of(group, "a").in_flight)
    assert 3.0 == now()
