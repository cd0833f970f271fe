"""What broke on a connection of the pool is sent again, to another endpoint."""

import asyncio

import pytest
from addressed import HOSTS, IN_ORDER, NAME, RETRIES, ROUND_ROBIN, in_flight, pools
from chains import connected, pass_on
from fault_server import End, answer, cut
from pool_server import RESET
from yarl import URL

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerClient,
    ConcurrencyLimit,
    ConcurrencyLimitingClient,
    Endpoint,
    EndpointGroup,
    EndpointSelectionStrategy,
    HedgingClient,
    OutlierDetection,
    RequestLog,
    client_decorator,
    request_options,
)
from aioretry_smithy._request.keys import service_key

UNENDED = cut(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", end=End.STALL)
"""An answer whose body does not come."""


def of_addresses(servers, prefix="", **settings):
    """Make a group of addresses behind a name."""
    settings.setdefault("selection", IN_ORDER)
    port = servers[0].url.port
    url = URL(f"http://{NAME}:{port}/{prefix}")
    hosts = [server.url.host for server in servers]
    endpoints = [Endpoint(url, address=host) for host in hosts]
    return EndpointGroup.of(*endpoints, **settings)


def of_urls(servers, prefix="", **settings):
    """Make a group of servers with URLs of their own."""
    settings.setdefault("selection", IN_ORDER)
    return EndpointGroup.of(*(server.url / prefix for server in servers), **settings)


GROUPS = {"addresses": of_addresses, "own URLs": of_urls}
each = pytest.mark.parametrize("make", GROUPS.values(), ids=GROUPS)


async def read(client, url="/x", **options):
    """Make a call, and return its status and its log."""
    async with client.get(url, **options) as response:
        await response.read()
        return response.status, RequestLog.of(response)


def endpoints_in(log):
    """Return the last digit of the address of each request."""
    return [str(each.endpoint).partition(":")[0][-1] for each in log.children]


@each
async def test_resend_goes_to_an_endpoint_that_is_not_tried(make):
    """At once, and paid by nobody; the first has neither failed nor answered."""
    async with pools(*HOSTS[:2]) as servers:
        group = make(servers)
        async with connected(group, RETRIES) as client:
            await read(client)
            first, second = group.states.values()
            noted_at = first.estimate._noted_at
            servers[0].leave_stale()
            status, log = await read(client)

    assert 200 == status
    assert ["stale_connection", None] == [each.delay_source for each in log.children]
    assert ["1", "2"] == endpoints_in(log)
    assert str(second.endpoint) == str(log.endpoint)
    assert [2, 1] == [len(server.to("/x")) for server in servers]
    assert (0, 0.0) == (first.failures, first.penalty)
    assert noted_at == first.estimate._noted_at
    assert second.latency is not None
    assert [0, 0] == in_flight(group)


@each
async def test_request_in_flight_moves(make):
    """It is under way where it is sent again, to the end of its body."""
    async with pools(*HOSTS[:2]) as servers:
        group = make(servers)
        async with connected(group, RETRIES) as client:
            await read(client)
            servers[0].leave_stale()
            with servers[1].holding():
                call = asyncio.create_task(read(client))
                await servers[1].arrived(1)
                busy = in_flight(group)
            await call

    assert [[0, 1], [0, 0]] == [busy, in_flight(group)]


async def test_resend_has_the_url_of_the_other_endpoint():
    """Its Host, its path prefix, the same query."""
    async with pools(*HOSTS[:2]) as servers:
        urls = [servers[0].url / "a/v1", servers[1].url / "b"]
        group = EndpointGroup.of(*urls, selection=IN_ORDER)
        async with connected(group, RETRIES) as client:
            await read(client, "x/y", params={"q": "1 2"})
            servers[0].leave_stale()
            await read(client, "x/y", params={"q": "1 2"})

    (seen,) = servers[1].requests
    assert "/b/x/y?q=1+2" == seen.target
    assert f"{urls[1].host}:{urls[1].port}" == seen.header("Host").decode()


async def test_resend_to_another_address_says_the_same():
    """Nothing but the connection is another one."""
    async with (
        pools(*HOSTS[:2]) as servers,
        connected(of_addresses(servers, "v1"), RETRIES) as client,
    ):
        await read(client, "x", data=b"body")
        servers[0].leave_stale()
        await read(client, "x", data=b"body")

    heads = [server.requests[-1].head for server in servers]
    assert heads[0] == heads[1]
    assert b"body" == servers[1].requests[-1].body


@each
async def test_resend_after_a_redirect_goes_to_the_same_endpoint(make):
    """Only the broken hop is sent again, which the other does not know."""
    async with (
        pools(*HOSTS[:2]) as servers,
        connected(make(servers), RETRIES) as client,
    ):
        await read(client, "/see/302/b")
        servers[0].scripts["/b"] = [RESET]
        status, log = await read(client, "/see/302/b")

    assert 200 == status
    assert ["1", "1"] == endpoints_in(log)
    assert [2, 3] == [servers[0].paths()[path] for path in ("/see/302/b", "/b")]
    assert [] == servers[1].requests


@each
async def test_stale_connection_of_a_stranger_is_none_of_the_endpoint(make):
    """The redirect was answered; its end is sent again to the stranger."""
    async with pools(*HOSTS[:2]) as servers, pools("127.0.0.1") as (stranger,):
        servers[0].scripts["/x"] = [
            answer(302, b"", f"Location: {stranger.url}/y") for _ in range(2)
        ]
        group = make(servers)
        async with connected(group, RETRIES) as client:
            await read(client)
            stranger.leave_stale()
            status, log = await read(client)

    assert (200, ["1", "1"]) == (status, endpoints_in(log))
    assert [2, 0, 3] == [len(each.requests) for each in (*servers, stranger)]
    assert [0, 0] == in_flight(group)
    assert [0.0, 0.0] == [state.penalty for state in group.states.values()]


@each
async def test_sticky_request_is_sent_again_to_the_same_endpoint(make):
    """Its key is there, and nowhere else."""
    sticky = EndpointSelectionStrategy.sticky(lambda ctx: "ann")
    async with (
        pools(*HOSTS[:2]) as servers,
        connected(make(servers, selection=sticky), RETRIES) as client,
    ):
        await read(client)
        for server in servers:
            server.leave_stale()
        status, log = await read(client)

    assert 200 == status
    assert 1 == len({*endpoints_in(log)})
    assert [0, 3] == sorted(len(server.requests) for server in servers)


@each
async def test_pinned_request_is_sent_again_to_the_same_endpoint(make):
    """The block of code said where."""
    async with pools(*HOSTS[:2]) as servers:
        group = make(servers)
        async with connected(group, RETRIES) as client:
            with request_options(endpoint=group.endpoints[0]):
                await read(client)
                servers[0].leave_stale()
                status, log = await read(client)

    assert (200, ["1", "1"]) == (status, endpoints_in(log))
    assert [0, 0] == in_flight(group)


@each
@pytest.mark.parametrize(
    ("number", "inside", "answers", "asked"),
    [
        pytest.param(1, (), {}, "11", id="there is no other"),
        pytest.param(2, (pass_on,), {}, "12", id="from within a decorator"),
        pytest.param(3, (), {1: [answer(503)]}, "123", id="an attempt follows it"),
    ],
)
async def test_resend_and_what_follows_go_to_what_is_not_tried(
    make, number, inside, answers, asked
):
    """As long as there is such an endpoint."""
    async with pools(*HOSTS[:number]) as servers:
        group = make(servers)
        async with connected(group, *inside, RETRIES) as client:
            await read(client)
            servers[0].leave_stale()
            for index, script in answers.items():
                servers[index].scripts["/x"] = [*script]
            status, log = await read(client)

    assert (200, [*asked]) == (status, endpoints_in(log))
    assert [0] * number == in_flight(group)


@each
async def test_resend_goes_to_no_endpoint_that_is_out(make):
    """It stays where it is."""
    async with pools(*HOSTS[:2]) as servers:
        detection = OutlierDetection(consecutive_failures=1)
        group = make(servers, outlier_detection=detection)
        async with connected(group, RETRIES) as client:
            await read(client)
            servers[0].scripts["/x"] = [answer(503)]
            await read(client)
            await read(client)
            servers[1].leave_stale()
            first, second = group.states.values()
            assert (True, None) == (first.reason is not None, second.reason)
            status, log = await read(client)

    assert (200, ["2", "2"]) == (status, endpoints_in(log))


@each
async def test_resend_of_a_resend_tries_the_third(make):
    """Each endpoint once, as long as their connections are of the pool."""
    async with pools(*HOSTS) as servers:
        group = make(servers, selection=ROUND_ROBIN)
        async with connected(group, RETRIES) as client:
            for _ in range(3):
                await read(client)
            for server in servers[:]:
                server.leave_stale()
            status, log = await read(client)

    # The last one broke, too, and is sent again on a fresh connection.
    assert 200 == status
    assert 4 == len(log.children)
    assert {"1", "2", "3"} == {*endpoints_in(log)[:3]}
    assert [0, 0, 0] == in_flight(group)


async def test_resend_of_a_request_that_a_decorator_sent_elsewhere_stays():
    """Its path is none of the endpoint's."""

    @client_decorator
    async def moved(delegate, ctx, request):
        moved = request.url.with_path("/y")
        return await delegate.execute(ctx, request.replace(url=moved))

    async with pools(*HOSTS[:2]) as servers:
        group = of_urls(servers, "v1")
        async with connected(group, moved, RETRIES) as client:
            await read(client)
            servers[0].leave_stale()
            status, log = await read(client)

    assert (200, ["1", "1"]) == (status, endpoints_in(log))
    assert [["/y"] * 3, []] == [
        [each.target for each in server.requests] for server in servers
    ]


@each
async def test_circuit_of_the_endpoint_that_was_left_hears_nothing(make):
    """What the other one answers is not its outcome."""
    made = {}

    def new(key):
        made[key] = CircuitBreaker(
            key, minimum_request_threshold=1, failure_rate_threshold=0.1
        )
        return made[key]

    async with pools(*HOSTS[:2]) as servers:
        group = make(servers)
        breaking = CircuitBreakerClient.new_per_host_decorator(new)
        async with connected(group, breaking, RETRIES) as client:
            await read(client)
            servers[0].leave_stale()
            servers[1].scripts["/x"] = [answer(503)]
            status, log = await read(client)

    assert (200, ["1", "2", "1"]) == (status, endpoints_in(log))
    assert ["closed"] == [str(breaker.state) for breaker in made.values()]


@each
async def test_place_at_the_endpoint_that_was_left_is_free(make):
    """Nothing is in flight there any more."""
    limits = {}

    def new(key):
        limits[key] = ConcurrencyLimit.fixed(1)
        return limits[key]

    async with pools(*HOSTS[:2]) as servers:
        limiting = ConcurrencyLimitingClient.new_per_host_decorator(new)
        async with connected(make(servers), limiting, RETRIES) as client:
            await read(client)
            servers[0].leave_stale()
            servers[1].scripts["/x"] = [UNENDED]
            async with client.get("/x") as response:
                places = [limit.in_flight for limit in limits.values()]
                log = RequestLog.of(response)

    assert ["1", "2"] == endpoints_in(log)
    assert [0] == places


@each
async def test_resend_of_a_request_that_may_be_hedged_goes_to_another(make):
    """There was one request up to then."""
    async with pools(*HOSTS[:2]) as servers:
        group = make(servers)
        async with connected(group, HedgingClient.new_decorator(5.0)) as client:
            await read(client)
            servers[0].leave_stale()
            status, log = await read(client)

    assert (200, str([*group.endpoints][1])) == (status, str(log.endpoint))
    assert [2, 1] == [len(server.requests) for server in servers]
    assert [0, 0] == in_flight(group)


async def test_trial_that_broke_is_given_up():
    """Another endpoint answers; whether this one is well nobody knows yet."""
    detection = OutlierDetection(consecutive_failures=1, ejection_time=0.01)
    async with pools(*HOSTS[:2]) as servers:
        group = of_addresses(servers, outlier_detection=detection)
        async with connected(group, RETRIES) as client:
            await read(client)
            servers[0].scripts["/x"] = [answer(503)]
            await read(client)
            servers[0].leave_stale()
            await asyncio.sleep(0.02)
            first = next(iter(group.states.values()))
            status, log = await read(client)
            given_up = first.reason, first.trial
            await read(client)

    assert (200, ["1", "2"]) == (status, endpoints_in(log))
    assert ("consecutive_failures", None) == given_up
    assert None is first.reason
    assert [0, 0] == in_flight(group)


async def test_cancelled_resend_gives_its_place_back():
    """The place at the endpoint where it is."""
    async with pools(*HOSTS[:2]) as servers:
        group = of_addresses(servers)
        async with connected(group, RETRIES) as client:
            await read(client)
            servers[0].leave_stale()
            with servers[1].holding():
                call = asyncio.create_task(read(client))
                await servers[1].arrived(1)
                call.cancel()
                await asyncio.gather(call, return_exceptions=True)

    assert [0, 0] == in_flight(group)


@each
@pytest.mark.parametrize(("first", "asked"), [(1, "11"), (2, "12")])
async def test_resend_stays_in_the_group_that_serves(make, first, asked):
    """As retries do: one that follows is not tried while one of the first is well."""
    keys = []

    @client_decorator
    async def note(delegate, ctx, request):
        keys.append(service_key(request))
        return await delegate.execute(ctx, request)

    async with pools(*HOSTS) as servers:
        near = make(servers[:first], name="near")
        group = near.or_else(make(servers[first:]))
        async with connected(group, note, RETRIES) as client:
            await read(client)
            servers[0].leave_stale()
            _, log = await read(client)

    assert [*asked] == endpoints_in(log)
    assert {"near"} == {*keys}
    assert [0, 0, 0] == in_flight(group)
