"""Several servers as one thing to call, and who hears of their changes.

Of the cases of endpoints.md (f): 1 to 3, 6, 7, 13, 14, 118.
"""

import asyncio
import gc
import weakref

import pytest
from balanced import IN_ORDER, ROUND_ROBIN, Fleet, call, group_of, name_of, state_of
from chains import bad_argument, chain, refused, retrying, session
from group_servers import Servers, Told, dns, of
from yarl import URL

from aioretry_smithy import (
    DynamicEndpointGroup,
    EmptyEndpointGroupError,
    Endpoint,
    EndpointGroup,
    EndpointGroupListener,
    EndpointSelectionStrategy,
    HttpRequest,
    LoadBalancingClient,
    SessionBuilder,
    client_decorator,
)
from aioretry_smithy.testing import VirtualTimeLoop

pytestmark = pytest.mark.usefixtures("shortest_ejections")


class Heard(EndpointGroupListener):
    """Notes the lists that it hears of."""

    def __init__(self):
        self.lists = []

    def on_endpoints_changed(self, group, endpoints):
        assert endpoints == group.endpoints
        self.lists.append([*map(name_of, endpoints)])


class TestOf:
    """Groups of servers that are known."""

    def test_takes_urls_and_endpoints(self):
        """Case 1: of any kind, mixed, in their order."""
        group = EndpointGroup.of(
            "http://a.example",
            URL("http://b.example/v1"),
            Endpoint("http://c.example", weight=2),
        )

        assert (
            Endpoint("http://a.example"),
            Endpoint("http://b.example/v1/"),
            Endpoint("http://c.example"),
        ) == group.endpoints
        assert 2.0 == group.endpoints[2].weight

    def test_equal_ones_are_one(self):
        """Case 2: the first of them, with its weight."""
        group = EndpointGroup.of(
            Endpoint("http://a.example", weight=3), "http://A.example:80/"
        )

        assert [3.0] == [each.weight for each in group.endpoints]

    def test_none_is_refused(self):
        """Case 3: a group that stays empty is a mistake."""
        with bad_argument("endpoints", (), "at least one"):
            EndpointGroup.of()

    @pytest.mark.parametrize("given", ["http://a.example", ["http://a.example"]])
    def test_constructor_names_what_makes_a_group(self, given):
        """The class itself is what one tries first."""
        with pytest.raises(ValueError, match=r"EndpointGroup\.of\(\*urls\), \.dns"):
            EndpointGroup(given)

    def test_what_is_no_endpoint_is_refused(self):
        """Case 3: a list is no URL, and the text says what to write."""
        servers = ["http://a.example", "http://b.example"]
        expected = (
            r"a str or a yarl.URL; for several servers EndpointGroup.of\(\*urls\)"
        )
        for several in (servers, tuple(servers), {*servers}):
            with pytest.raises(ValueError, match=f"^url: .*{expected}"):
                EndpointGroup.of(several)
            with pytest.raises(ValueError, match=f"^base_url: .*{expected}"):
                SessionBuilder.standard(several)
        with bad_argument("url", 7, "a str or a yarl.URL"):
            EndpointGroup.of(7)

    @pytest.mark.parametrize(
        ("name", "value", "expected"),
        [
            ("selection", "random", "an EndpointSelectionStrategy"),
            ("outlier_detection", True, "an OutlierDetection, or None"),
            ("listener", print, "an EndpointGroupListener, or None"),
            ("selection_timeout", 0, "finite and > 0"),
        ],
    )
    def test_bad_settings_are_refused(self, name, value, expected):
        """Each with its name."""
        with pytest.raises(ValueError, match=f"^{name}: ") as raised:
            EndpointGroup.of("http://a.example", **{name: value})

        assert str(raised.value).endswith(f"(expected: {expected})")

    def test_name_is_made_of_the_origins(self):
        """Each once; unless there is one."""
        two = "http://a.example/v1", "http://a.example/v2", "http://b.example"

        assert "http://a.example, http://b.example" == EndpointGroup.of(*two).name
        assert "orders" == EndpointGroup.of(*two, name="orders").name

    @pytest.mark.parametrize("name", ["", 0, False, b""])
    @pytest.mark.parametrize(
        "make",
        [
            lambda name: EndpointGroup.of("http://a.example", name=name),
            lambda name: EndpointGroup.dns("http://a.example", name=name),
            lambda name: DynamicEndpointGroup(name=name),
        ],
        ids=["of", "dns", "dynamic"],
    )
    def test_empty_name_is_refused(self, make, name):
        """It is no name, and was not left out."""
        with bad_argument("name", name, "a str that is not empty"):
            make(name)


class TestDescribe:
    """A group in words."""

    def test_names_all_and_the_settings(self):
        """Case 13: nothing secret can be in it."""
        group = EndpointGroup.of(
            "http://a.example",
            Endpoint("http://b.example", address="10.0.0.3", weight=2),
            selection=ROUND_ROBIN,
            outlier_detection=None,
        )

        text = (
            "EndpointGroup.of(Endpoint('http://a.example'), "
            "Endpoint('http://b.example', address='10.0.0.3', weight=2.0), "
            "selection=EndpointSelectionStrategy.round_robin(), outlier_detection=None)"
        )
        assert [text, text] == [group.describe(), repr(group)]

    def test_builder_shows_it_inside_the_retries(self):
        """Case 13: with the URL that the session goes by."""
        lines = SessionBuilder(group_of("ab")).decorator(retrying()).describe()

        _, second, third = lines.splitlines()
        assert second.startswith("  LoadBalancingClient(EndpointGroup.of(")
        assert "aiohttp.ClientSession(" in third


class TestWeight:
    """Endpoints without a share."""

    async def test_zero_is_never_chosen(self):
        """Case 6: not even while the others are out."""
        fleet = Fleet(a=503)
        group = EndpointGroup.of(
            Endpoint("http://z.example", weight=0),
            "http://a.example",
            selection=IN_ORDER,
        )
        async with fleet.session(group, retrying(0.0)) as client:
            for _ in range(9):
                await call(client)

        assert {"a"} == set(fleet.asked)

    async def test_all_zero_is_an_empty_group(self):
        """Case 7: at once, nothing sent, each named with why."""
        group = EndpointGroup.of(
            Endpoint("http://a.example", weight=0),
            Endpoint("http://b.example", weight=0),
        )
        fleet = Fleet()
        async with fleet.session(group) as client:
            error, log = await call(client)

        assert EmptyEndpointGroupError is type(error)
        assert (
            "endpoint group 'http://a.example, http://b.example': empty: "
            "a.example (weight 0), b.example (weight 0)"
        ) == str(error)
        assert ([], False, 0.0) == (fleet.asked, log.sent, log.duration)


class TestSharing:
    """Groups in several sessions and loops."""

    async def test_two_sessions_of_one_builder_share_what_is_known(self):
        """Case 14: what one has learned, the other knows."""
        fleet = Fleet(a=refused())
        group = group_of("ab")
        builder = chain(fleet.transport, base_url=group)
        async with builder.build() as one, builder.build() as other:
            await call(one)
            await call(other)

        assert ["a", "b"] == fleet.asked

    async def test_one_strategy_serves_two_groups(self):
        """Each group has turns of its own."""
        fleet = Fleet()
        one, other = (
            group_of("ab", selection=ROUND_ROBIN),
            group_of("cd", selection=ROUND_ROBIN),
        )
        async with fleet.session(one) as first, fleet.session(other) as second:
            for _ in range(4):
                await call(first)
                await call(second)

        assert [2, 2, 2, 2] == [fleet.asked.count(name) for name in "abcd"]

    def test_another_loop_begins_afresh(self):
        """Loops in turn: what is known belongs to the clock of one."""
        fleet = Fleet(a=refused())
        group = group_of("ab")

        async def twice():
            async with fleet.session(group) as client:
                await call(client)
                await call(client)
            return state_of(group, "a")

        states = []
        for _ in range(2):
            with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
                states.append(runner.run(twice()))

        assert ["a", "b", "a", "b"] == fleet.asked
        assert states[0] is not states[1]

    def test_looking_at_states_from_elsewhere_resets_nothing(self):
        """After the loop has ended, and in no loop at all."""
        group = group_of("ab")

        async def once():
            async with Fleet(a=refused()).session(group) as client:
                await call(client)

        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            runner.run(once())

        assert "connect_failures" == state_of(group, "a").reason
        assert group.states[Endpoint("http://a.example")] is state_of(group, "a")

    async def test_is_collected_when_nobody_keeps_it(self):
        """Neither a listener nor what was called keeps it."""
        heard = Heard()
        group = group_of("ab", listener=heard)
        async with Fleet().session(group) as client:
            await call(client)
        kept, states = weakref.ref(group), group.states
        del group, client
        gc.collect()

        assert kept() is None
        assert 2 == len(states)


class TestSelect:
    """Choices without a request."""

    async def test_chooses_as_for_a_request_and_counts_nothing(self):
        """Also after a wait, where there is none."""
        seen = []
        group = group_of("ab", selection=ROUND_ROBIN)

        @client_decorator
        async def look(delegate, ctx, request):
            seen.append(group.select_now(ctx))
            seen.append(await group.select(ctx))
            return await delegate.execute(ctx, request)

        async with session([200], look) as client:
            await call(client, "http://c.example")

        assert {"a", "b"} == {*map(name_of, seen)}
        assert {0} == {each.in_flight for each in group.states.values()}

    async def test_wants_a_context(self):
        """Such as the one that a request comes with."""
        group = group_of("a")

        with bad_argument("ctx", group, "a ClientRequestContext"):
            group.select_now(group)
        with bad_argument("ctx", None, "a ClientRequestContext"):
            await group.select(None)

    async def test_none_is_found_in_an_empty_group(self):
        """And none that will never come is waited for."""
        seen = []
        group = EndpointGroup.of(Endpoint("http://a.example", weight=0))

        @client_decorator
        async def look(delegate, ctx, request):
            seen.append(group.select_now(ctx))
            with pytest.raises(EmptyEndpointGroupError):
                await group.select(ctx)
            return await delegate.execute(ctx, request)

        async with session([200], look) as client:
            await call(client, "http://c.example")

        assert [None] == seen

    async def test_is_no_trial(self):
        """Case 82: nothing is sent that could try an endpoint."""
        seen = []
        fleet = Fleet(a=[refused(), 200])
        group = group_of("ab")

        @client_decorator
        async def look(delegate, ctx, request):
            seen.append(name_of(group.select_now(ctx)))
            return await delegate.execute(ctx, request)

        async with fleet.session(group, look) as client:
            await call(client)
            await asyncio.sleep(7.0)
            await call(client)

        assert ["a", "b"] == seen
        assert ["a", "a"] == fleet.asked


class TestClient:
    """The decorator alone."""

    async def test_two_groups_in_a_chain_choose_once(self):
        """The outer one has chosen; the inner one lets the request pass."""
        fleet = Fleet()
        outer, inner = group_of("a"), group_of("b")
        client = chain(
            fleet.transport, LoadBalancingClient.new_decorator(inner), base_url=outer
        ).build()
        async with client:
            _, log = await call(client)

        assert (["a"], "a.example") == (fleet.asked, log.endpoint)


def test_strategy_that_is_not_the_base_is_needed():
    """The base chooses nothing."""
    with pytest.raises(NotImplementedError):
        EndpointSelectionStrategy().select(None, [])


async def test_no_task_and_no_timer_is_left():
    """Cases 118 and 143: where the list is given, nothing runs beside a call."""
    loop = asyncio.get_running_loop()
    seen = []

    def look(ctx, request):
        seen.append((len(asyncio.all_tasks()), len(loop._scheduled)))
        return 200

    before = len(loop._scheduled)
    async with Fleet(a=look).session(group_of("a")) as client:
        await call(client)

    assert (1, before) == (seen[0][0], len(loop._scheduled))


@pytest.mark.parametrize("url", ["http://other.example/x", "http://a:port/", 7])
async def test_request_made_by_hand_inside_goes_elsewhere_where_it_says_so(url):
    """What is no path is left to aiohttp."""

    @client_decorator
    async def anew(delegate, ctx, request):
        return await delegate.execute(ctx, HttpRequest("GET", url))

    fleet = Fleet()
    async with fleet.session(group_of("ab"), anew) as client:
        await call(client)

    assert [None] == [each.route for each in fleet.transport.requests]
    assert [url] == [each.target for each in fleet.transport.requests]


async def test_errors_of_a_listener_break_nothing(caplog):
    """They are logged; the call has its answer, and the endpoint is out."""

    class AllBroken(EndpointGroupListener):
        def on_endpoints_changed(self, group, endpoints):
            raise RuntimeError("changed")

        def on_ejected(self, group, endpoint, reason, until):
            raise RuntimeError("ejected")

        def on_returned(self, group, endpoint):
            raise RuntimeError("returned")

    servers = Servers(a=503)
    group = of("a", "b", listener=AllBroken())
    async with servers.session(group) as client:
        answers = [await servers.get(client) for _ in range(2)]
        servers.answers.clear()
        await asyncio.sleep(5.0)
        answers += [await servers.get(client) for _ in range(2)]

    assert [503, 200, 200, 200] == answers
    assert ["a", "b", "a", "a"] == servers.asked
    assert ["changed", "ejected", "returned"] == [
        str(record.exc_info[1]) for record in caplog.records
    ]


async def test_listener_of_each_group_hears_of_that():
    """Where one follows the other."""
    first, other, servers = Told(), Told(), Servers(a=503)
    group = of("a", listener=first).or_else(of("b", listener=other))
    async with servers.session(group) as client:
        for _ in range(2):
            await servers.get(client)

    assert [
        ("changed", "a"),
        ("ejected", "a", "consecutive_failures", 5.0),
    ] == first.events
    assert [("changed", "b")] == other.events


async def test_list_that_comes_to_nobody_is_told_to_nobody():
    """The group is gone when its query ends."""
    told = Told()
    group = dns(1.0, ["10.0.0.1"], listener=told)
    waiting = asyncio.create_task(group.when_ready())
    await asyncio.sleep(0.5)
    waiting.cancel()
    await asyncio.wait([waiting])
    reference = weakref.ref(group)
    del group, waiting
    gc.collect()
    assert None is reference()
    await asyncio.sleep(1.0)

    assert [] == told.events
