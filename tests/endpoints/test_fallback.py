"""A group that serves while none of another one is well."""

import asyncio
import gc
import weakref

import aiohttp
import pytest
from calls import begin
from chains import in_virtual_time, now, raises_exactly, refused
from group_servers import Servers, dns, of, retrying
from yarl import URL

from aioretry_smithy import (
    DynamicEndpointGroup,
    EmptyEndpointGroupError,
    Endpoint,
    EndpointGroup,
    EndpointSelectionTimeoutError,
    LoadBalancingClient,
    SessionBuilder,
    client_decorator,
)
from aioretry_smithy._request.keys import host_key, service_key

pytestmark = pytest.mark.usefixtures("shortest_ejections")


def out(group):
    """Return those of a group that are out."""
    return [str(each) for each, state in group.states.items() if state.is_out]


async def test_floor_holds_in_the_last_group():
    """Nothing follows it, so one of its two stays in use."""
    servers = Servers(a=503, b=503, c=503)
    group = of("a").or_else(of("b", "c"))
    async with servers.session(group) as client:
        for _ in range(5):
            await servers.get(client)

    assert ["a", "b", "c", "c", "c"] == servers.asked
    assert ["a", "b"] == out(group)


async def test_group_alone_keeps_its_floor_once_nothing_follows():
    """When the group of both is gone."""
    first = of("a", "b")
    followed = first.or_else(of("c"))
    del followed
    gc.collect()
    servers = Servers(a=503, b=503)
    async with servers.session(first) as client:
        for _ in range(3):
            await servers.get(client)

    assert ["a", "b", "b"] == servers.asked


async def test_retry_goes_to_the_first_group_with_any_that_is_well():
    """Not further while one of it is well, tried or not."""
    servers = Servers(a=refused(), b=503, c=200)
    group = of("a", "b", outlier_detection=None).or_else(of("c"))
    async with servers.session(group, retrying()) as client:
        error = await servers.get(client)

    assert isinstance(error, aiohttp.ClientConnectorError)
    assert ["a", "b", "a"] == servers.asked


async def test_retry_in_a_group_alone_knows_nothing_of_what_follows_it():
    """Which its calls do not go to: the wait is that of the backoff."""
    servers = Servers(a=refused())
    first = of("a")
    both = first.or_else(of("b"))
    async with servers.session(first, retrying(2, wait=9.0)) as client:
        await servers.get(client)
        waited = now()

    assert ["a", "a"] == servers.asked
    assert 9.0 == waited
    assert 2 == len(both.endpoints)


async def test_all_of_the_first_serve_where_no_group_has_one_that_is_well():
    """Better than none."""
    servers = Servers(a=503)
    group = of("a").or_else(of("b"))
    async with servers.session(
        of("a").or_else(EndpointGroup.of(Endpoint("http://b", weight=0.0)))
    ) as client:
        assert [503, 503] == [await servers.get(client) for _ in range(2)]

    assert ["a", "a"] == servers.asked
    assert ("a", "b") == tuple(map(str, group.endpoints))


async def test_absolute_url_goes_to_the_group_that_it_names_alone():
    """Also where another one is preferred, and though none of it is well."""
    servers = Servers(b=503)
    group = of("a").or_else(of("b")).or_else(of("c", "d"))
    async with servers.session(group) as client:
        answers = [await servers.get(client, "http://b/x") for _ in range(2)]
        await servers.get(client, "http://stranger/")
        await servers.get(client, URL("http://c/"))

    assert [503, 503] == answers
    # The last one names a group of two origins, which has none of its own.
    assert ["b", "b", "stranger", "c"] == servers.asked
    assert ["a", "b", "c", "d"] == [str(each) for each in group.endpoints]
    assert ["b"] == out(group)


async def test_retry_of_an_absolute_url_stays_in_its_group():
    """Others are no reason to hurry."""
    servers = Servers(a=refused())
    async with servers.session(of("a").or_else(of("b")), retrying(2, 9.0)) as client:
        await servers.get(client, "http://a/x")

    assert ["a", "a"] == servers.asked
    assert 9.0 == now()


async def test_keys_are_those_of_the_first_group():
    """Of what is kept per service, whichever serves; servers have their own."""
    seen = []

    @client_decorator
    async def note(delegate, ctx, request):
        seen.append((host_key(request), service_key(request)))
        return await delegate.execute(ctx, request)

    servers = Servers(a=503)
    group = of("a", name="near").or_else(of("b", name="far"))
    async with servers.session(group, note, retrying(2), note) as client:
        await servers.get(client)

    assert [("near", "near"), ("a:80", "near"), ("b:80", "near")] == seen


async def test_group_is_chosen_from_by_hand():
    """As by its calls."""
    group = DynamicEndpointGroup().or_else(of("b"))
    ctx = begin()

    assert None is group.select_now(ctx)
    assert "b" == str(await group.select(ctx))
    assert 3.2 == now()


async def test_group_is_ready_when_one_of_its_groups_is():
    """After the first list of the first one, or the time for that."""
    group = dns(1.0, ["10.0.0.1"]).or_else(of("b"))
    ready = await group.when_ready()

    assert ["10.0.0.1:80", "b"] == [*map(str, ready)]
    assert 1.0 == now()
    group = DynamicEndpointGroup(selection_timeout=0.5).or_else(of("b"))
    assert ["b"] == [*map(str, await group.when_ready())]
    assert 1.5 == now()


async def test_group_that_does_not_get_ready_says_so():
    """In the time that there is, or at once where nothing can come."""
    group = DynamicEndpointGroup().or_else(DynamicEndpointGroup())
    with pytest.raises(EndpointSelectionTimeoutError):
        await group.when_ready(1.0)

    assert 1.0 == now()


async def test_all_out_is_ready():
    """It is used all the same."""
    servers = Servers(a=503)
    group = of("a").or_else(EndpointGroup.of(Endpoint("http://b", weight=0.0)))
    async with servers.session(group) as client:
        await servers.get(client)

    assert 2 == len(await group.when_ready(1.0))


def test_group_within_itself_is_refused():
    """At any depth."""
    a, b = of("a"), of("b")
    expected = "a group that has none in common with this one"
    for first, other in ((a, a), (a, b.or_else(a)), (a.or_else(b), b)):
        with pytest.raises(ValueError, match=rf"other: .* \(expected: {expected}\)"):
            first.or_else(other)
    with raises_exactly("other: <str object> (expected: an EndpointGroup)"):
        a.or_else("http://a")


def test_group_describes_itself():
    """By its groups."""
    a, b = of("a"), of("b")
    group = a.or_else(b)

    assert f"{a!r}.or_else({b!r})" == group.describe()
    assert "http://a, else http://b" == group.name
    assert "http://a" == str(group.placeholder).rstrip("/")


def test_endpoint_of_both_groups_is_shown_once():
    """As the first knows it."""
    a, b = of("a"), of("a", "b")
    group = a.or_else(b)

    assert ["a", "b"] == [*map(str, group.endpoints)]


async def test_group_that_nobody_keeps_is_collected():
    """Though its groups are kept, and the session is closed."""
    a, b = of("a"), of("b")
    group = a.or_else(b)
    servers = Servers()
    async with servers.session(group) as client:
        await servers.get(client)
    reference = weakref.ref(group)
    del group, client, servers
    gc.collect()

    assert None is reference()


def test_new_event_loop_begins_afresh():
    """Waits of the old one are of no interest."""
    servers = Servers()
    first = DynamicEndpointGroup(selection_timeout=0.5)
    group = first.or_else(DynamicEndpointGroup(selection_timeout=0.5))

    async def call():
        async with servers.session(group) as client:
            return await servers.get(client)

    for _ in range(2):
        error = in_virtual_time(call())
        assert isinstance(error, EndpointSelectionTimeoutError)


async def test_sessions_share_what_a_group_knows():
    """An endpoint that is out for one is out for the other, in each group."""
    servers = Servers(a=503)
    shared = of("a", "a2")
    one, two = shared.or_else(of("b")), shared.or_else(of("c"))
    async with servers.session(one) as first, servers.session(two) as second:
        for client in (first, second):
            await servers.get(client)

    assert ["a", "a2"] == servers.asked


async def test_url_that_a_decorator_takes_off_is_of_the_first_groups():
    """That names none of them as it stands."""
    servers = Servers()
    group = of("a", "a2").or_else(of("b", "b2"))
    balancing = LoadBalancingClient.new_decorator(group, service="https://api/v1")
    builder = SessionBuilder()
    for each in (servers.transport, balancing):
        builder.decorator(each)
    async with builder.build() as client:
        await servers.get(client, "https://api/v1/orders")

    assert ["http://a/orders"] == servers.urls


async def test_proxy_is_warned_of_once(caplog):
    """It finds addresses by itself, but names are chosen all the same."""
    servers = Servers()
    group = dns(["10.0.0.1"]).or_else(of("b"))
    async with servers.session(group) as client:
        for _ in range(2):
            await servers.get(client, proxy="http://proxy")

    (message,) = caplog.messages
    assert "endpoint group 'http://orders, else http://b'" in message
    assert ["10.0.0.1:80"] * 2 == servers.asked


async def test_first_list_is_awaited_up_to_the_time_for_that():
    """Once, not by each call anew; then the other group serves."""
    servers = Servers()
    group = dns(4.0, ["10.0.0.1"], selection_timeout=2.0).or_else(of("b"))
    async with servers.session(group) as client:
        await servers.get(client)
        first = now()
        await servers.get(client)
        second = now()
        await asyncio.sleep(3.0)
        await servers.get(client)

    assert (2.0, 2.0) == (first, second)
    assert ["b", "b", "10.0.0.1:80"] == servers.asked


async def test_empty_first_group_is_not_awaited():
    """It had endpoints, and has none now."""
    servers = Servers()
    first = DynamicEndpointGroup(["http://a"])
    async with servers.session(first.or_else(of("b"))) as client:
        await servers.get(client)
        first.set_endpoints([])
        await servers.get(client)
        first.set_endpoints(["http://a2"])
        await servers.get(client)

    assert ["a", "b", "a2"] == servers.asked
    assert 0.0 == now()


async def test_expired_list_of_the_first_group_is_awaited():
    """After a night without calls the first one does not go astray."""
    servers = Servers()
    group = dns(["10.0.0.1"], 0.5, ["10.0.0.2"], refresh=(1.0, 10.0)).or_else(of("b"))
    async with servers.session(group) as client:
        await servers.get(client)
        await asyncio.sleep(100.0)
        await servers.get(client)

    assert ["10.0.0.1:80", "10.0.0.2:80"] == servers.asked


async def test_waiting_call_goes_on_when_either_group_is_filled():
    """At once, in order."""
    servers = Servers()
    first, other = DynamicEndpointGroup(), DynamicEndpointGroup()
    async with servers.session(first.or_else(other)) as client:
        calls = [asyncio.create_task(servers.get(client)) for _ in range(3)]
        await asyncio.sleep(1.0)
        first.set_endpoints(["http://a"])
        assert [200] * 3 == await asyncio.gather(*calls)
        assert 1.0 == now()

    async with servers.session(
        DynamicEndpointGroup(selection_timeout=0.5).or_else(other)
    ) as client:
        call = asyncio.create_task(servers.get(client))
        await asyncio.sleep(2.0)
        other.set_endpoints(["http://b"])
        assert 200 == await call
        assert 3.0 == now()
    assert ["a", "a", "a", "b"] == servers.asked


async def test_call_waits_for_the_other_after_the_first():
    """Each list has its own time; the other is asked for its one only then."""
    servers = Servers()
    group = dns(9.0, ["10.0.0.1"], selection_timeout=1.0).or_else(
        dns(0.7, ["10.0.0.2"], name="other", selection_timeout=1.0)
    )
    async with servers.session(group) as client:
        assert 200 == await servers.get(client)
        assert 1.7 == now()
        await asyncio.sleep(9.0)

    assert ["10.0.0.2:80"] == servers.asked


async def test_call_for_which_no_group_has_an_endpoint_fails():
    """After its time, with what each group knows."""
    servers = Servers()
    group = dns(OSError("no route"), selection_timeout=1.0).or_else(
        DynamicEndpointGroup(selection_timeout=0.5, name="other")
    )
    async with servers.session(group) as client:
        error = await servers.get(client)

    assert isinstance(error, EndpointSelectionTimeoutError)
    assert (
        "endpoint group 'http://orders, else other': no endpoint within 1 s"
        " (OSError: no route)"
    ) == str(error)


async def test_call_fails_at_once_where_none_can_come():
    """All have a weight of 0."""
    none = EndpointGroup.of(Endpoint("http://a", weight=0.0))
    group = none.or_else(EndpointGroup.of(Endpoint("http://b", weight=0.0)))
    servers = Servers()
    async with servers.session(group) as client:
        error = await servers.get(client)

    assert isinstance(error, EmptyEndpointGroupError)
    assert {"a": "weight 0", "b": "weight 0"} == dict(error.endpoints)
    assert 0.0 == now()


async def test_list_too_old_serves_when_the_time_to_wait_is_over():
    """No other group is asked for its one meanwhile."""
    servers = Servers()
    group = dns(
        ["10.0.0.1"], 4.0, ["10.0.0.2"], refresh=(1.0, 10.0), selection_timeout=1.0
    ).or_else(DynamicEndpointGroup(selection_timeout=0.5))
    async with servers.session(group) as client:
        await servers.get(client)
        await asyncio.sleep(100.0)
        for waited in (1.0, 0.0):
            began = now()
            assert 200 == await servers.get(client)
            assert waited == now() - began
        await asyncio.sleep(9.0)


@pytest.mark.parametrize("follows", [False, True])
async def test_list_too_old_serves_until_the_query_has_ended(follows):
    """Calls that come later do not wait for their part."""
    servers = Servers()
    group = dns(["10.0.0.1"], 4.0, ["10.0.0.2"], refresh=(1.0, 10.0))
    if follows:
        group = group.or_else(EndpointGroup.of(Endpoint("http://b", weight=0.0)))
    async with servers.session(group) as client:
        await servers.get(client)
        await asyncio.sleep(100.0)
        times = []
        for _ in range(2):
            await servers.get(client)
            times.append(now())
        await asyncio.sleep(1.0)
        await servers.get(client)

    assert [103.2, 103.2] == times
    assert ["10.0.0.1:80", "10.0.0.1:80", "10.0.0.1:80", "10.0.0.2:80"] == servers.asked


async def test_call_waits_its_time_though_those_before_did():
    """Where there is still none."""
    servers = Servers()
    group = DynamicEndpointGroup().or_else(DynamicEndpointGroup())
    async with servers.session(group) as client:
        for _ in range(2):
            error = await servers.get(client)
            assert isinstance(error, EndpointSelectionTimeoutError)

    # The first one waits for both groups, one after the other.
    assert 3.2 + 3.2 + 3.2 == now()
