"""The endpoints of a group in one event loop, also where the program sets them.

Of the cases of endpoints.md (f): 87, 89, 105, 112, 113, 120, 122, 124.
"""

import asyncio
import random
import threading

import pytest
from balanced import (
    IN_ORDER,
    ROUND_ROBIN,
    Fleet,
    call,
    group_of,
    name_of,
    out,
    state_of,
    url_of,
)
from chains import SAFELY, after, in_virtual_time, now, refused, retrying

from aioretry_smithy import (
    DynamicEndpointGroup,
    Endpoint,
    EndpointGroup,
    EndpointGroupListener,
    EndpointSelectionStrategy,
    OutlierDetection,
)
from aioretry_smithy._endpoints.discovery import Listed

pytestmark = pytest.mark.usefixtures("shortest_ejections")


def names_of(states):
    """Return the names of endpoints."""
    return "".join(name_of(each.endpoint) for each in states)


async def ranked(ranks, **settings):
    """Make a group whose endpoints have ranks, and its roster."""
    group = DynamicEndpointGroup(
        map(url_of, ranks), selection=group_of()._selection, **settings
    )
    await group.when_ready()
    roster = group._roster
    roster.set_listed(
        Listed(Endpoint(url_of(name)), rank) for name, rank in ranks.items()
    )
    return group, roster


class TestRanks:
    """Endpoints that serve while none of a lower rank does."""

    async def test_lowest_rank_with_any_that_is_well(self):
        """Case 114 of rosters: a higher one waits."""
        _group, roster = await ranked({"c": 1, "a": 0, "b": 0})

        assert "ab" == names_of(roster.well)
        assert ("cab", [1, 0, 0]) == (
            names_of(roster.states),
            [each.rank for each in roster.states],
        )

    async def test_all_of_a_rank_may_be_out_where_another_follows(self):
        """Case 87: the floor holds only where nothing follows."""
        fleet = Fleet(a=refused(), b=refused(), c=refused(), d=refused())
        group, _roster = await ranked({"a": 0, "b": 0, "c": 1, "d": 1})
        async with fleet.session(group) as client:
            for _ in range(6):
                await call(client)

        assert {"a", "b", "c"} == set(out(group))
        assert "abcddd" == fleet.text

    async def test_lower_rank_serves_again_once_it_is_back(self):
        """By a trial of the first request that may be one."""
        fleet = Fleet(a=[refused(), 200])
        group, _roster = await ranked({"a": 0, "b": 1})
        async with fleet.session(group) as client:
            await call(client)
            await call(client)
            await asyncio.sleep(5.0)
            await call(client)
            await call(client)

        assert "abaa" == fleet.text

    async def test_where_none_is_well_the_lowest_rank_is_used(self):
        """All of it."""
        _group, roster = await ranked({"a": 0, "b": 0, "c": 1})
        for state in roster.states:
            state.ejected_until = now() + 9.0
        roster.review()

        assert ("ab", ()) == (names_of(roster.well), roster.healthy())


class TestTime:
    """What changes by time alone."""

    async def test_one_that_was_set_aside_is_back_for_a_retry(self):
        """It is looked up when the first attempt has failed."""
        fleet = Fleet(
            a=[(503, {"Retry-After": "7"}, b""), 200], b=after(1.0, refused())
        )
        group = group_of("ab")
        async with fleet.session(group, retrying(SAFELY)) as client:
            async with fleet.session(group) as other:
                await call(other)
            await asyncio.sleep(6.5)
            status, log = await call(client)

        assert (200, "aba") == (status, fleet.text)
        assert ["next_endpoint"] == [each.delay_source for each in log.children[:-1]]

    async def test_due_at_is_the_next_moment(self):
        """Until then no choice looks at the clock twice."""
        fleet = Fleet(a=refused(), b=refused())
        group = group_of("abcd")
        async with fleet.session(group) as client:
            await call(client)
            await asyncio.sleep(1.0)
            await call(client)
            moments = [group._roster.due_at]
            await asyncio.sleep(4.0)
            await call(client, method="POST")
            moments.append(group._roster.due_at)

        assert [5.0, 6.0] == moments
        assert "a" == names_of(group._roster.due)

    def test_without_a_loop_there_is_no_time(self):
        """To look at a group needs none."""
        group = group_of("ab")
        state = state_of(group, "a")

        assert (0.0, None) == (state.roster.now(), state.latency)


class TestUnsettled:
    """How many may need more than the quick choice."""

    async def test_falls_to_zero_as_they_answer(self):
        """And rises with each failure, until the next success."""
        fleet = Fleet(b=[200, 503, 200])
        group = EndpointGroup.of(
            *map(url_of, "ab"), outlier_detection=OutlierDetection(max_ejected=0.0)
        )
        seen = []
        async with fleet.session(group) as client:
            for _ in range(2):
                await call(client)
                seen.append(group._roster.unproven)
            while not state_of(group, "b").penalty:
                await call(client)
            seen.append(group._roster.unproven)
            await asyncio.sleep(1.0)
            await call(client)
            seen.append(group._roster.unproven)

        assert [1, 0, 1, 0] == seen


async def test_nobody_who_left_is_kept_for_long():
    """Case 89: names that come and go leave no growth."""
    group = DynamicEndpointGroup()
    await asyncio.sleep(0)
    group._roster_in(asyncio.get_running_loop())
    for number in range(100):
        group.set_endpoints([f"http://host-{number}.example"])
        await asyncio.sleep(30.0)

    assert len(group._roster.left) <= 12


class Heard(EndpointGroupListener):
    """Notes the lists that it hears of."""

    def __init__(self):
        self.lists = []

    def on_endpoints_changed(self, group, endpoints):
        self.lists.append("".join(map(name_of, endpoints)))


def names(group):
    """Return the names of the endpoints that a group shows."""
    return "".join(map(name_of, group.endpoints))


class TestSet:
    """Lists that are given."""

    def test_is_shown_before_its_first_use(self):
        """And after each change."""
        group = DynamicEndpointGroup(["http://a.example"])
        shown = [names(group)]
        group.set_endpoints(map(url_of, "cab"))
        shown.append(names(group))
        group.set_endpoints([])
        shown.append(names(group))

        assert ["a", "cab", ""] == shown
        assert (1.0,) == tuple(
            each.weight
            for each in DynamicEndpointGroup(["http://a.example"]).states.values()
        )

    @pytest.mark.parametrize(
        "bad",
        [
            *("http://a.example", ["a.example"], ["http://a.example", None]),
            *(None, Endpoint("http://a.example")),
        ],
    )
    def test_bad_list_changes_nothing(self, bad):
        """Neither in part."""
        group = DynamicEndpointGroup(["http://z.example"])
        with pytest.raises(ValueError, match="^(endpoints|url): "):
            group.set_endpoints(bad)

        assert "z" == names(group)

    def test_list_of_the_callers_is_copied(self):
        """He may change it then."""
        given = [url_of("a")]
        group = DynamicEndpointGroup(given)
        given.append(url_of("b"))

        assert "a" == names(group)

    def test_names_are_numbers(self):
        """Two groups without a name are two."""
        one, other = DynamicEndpointGroup(), DynamicEndpointGroup()

        assert one.name != other.name
        assert "DynamicEndpointGroup(" == repr(one)[:21]
        assert "endpoint-group" in one.name

    async def test_listener_hears_of_changes_alone(self):
        """Case 105: the same list again is none, another order is one."""
        heard = Heard()
        group = DynamicEndpointGroup(map(url_of, "ab"), listener=heard)
        await group.when_ready()
        for given in ("ab", "ba", "abc", "abc", ""):
            group.set_endpoints(map(url_of, given))

        assert ["ab", "ba", "abc", ""] == heard.lists

    async def test_weight_of_one_that_stays_may_change(self):
        """What is known of it is kept."""
        fleet = Fleet(a=after(0.5, 200))
        group = DynamicEndpointGroup(["http://a.example"])
        async with fleet.session(group) as client:
            await call(client)
            group.set_endpoints([Endpoint("http://a.example", weight=3)])

        state = state_of(group, "a")
        assert (3.0, 3.0) == (state.weight, state.endpoint.weight)
        assert 0.5 == pytest.approx(state.latency)

    async def test_listener_may_set_endpoints(self):
        """Case 124: from within an event."""

        class Setting(Heard):
            def on_endpoints_changed(self, group, endpoints):
                super().on_endpoints_changed(group, endpoints)
                if len(endpoints) < 3:
                    given = "abc"[: len(endpoints) + 1]
                    group.set_endpoints(map(url_of, given))

        heard = Setting()
        group = DynamicEndpointGroup(["http://a.example"], listener=heard)
        await group.when_ready()

        assert (["a", "ab", "abc"], "abc") == (heard.lists, names(group))

    async def test_turns_need_weights(self):
        """A weight that is 0 at first has no turn yet."""
        group = DynamicEndpointGroup(
            [Endpoint("http://z.example", weight=0), "http://a.example"],
            selection=ROUND_ROBIN,
        )
        fleet = Fleet()
        async with fleet.session(group) as client:
            await call(client)
            group.set_endpoints(map(url_of, "za"))
            for _ in range(4):
                await call(client)

        assert 2 <= fleet.text.count("z") <= 3


class TestUnderLoad:
    """Changes while requests are under way."""

    async def test_removed_one_gets_no_new_request(self):
        """Case 112: what is under way there ends."""
        fleet = Fleet(a=after(2.0, 200), b=after(2.0, 200))
        group = DynamicEndpointGroup(map(url_of, "ab"), selection=IN_ORDER)
        async with fleet.session(group, retrying(0.0)) as client:
            first = asyncio.create_task(call(client))
            await asyncio.sleep(1.0)
            state = state_of(group, "a")
            group.set_endpoints(map(url_of, "b"))
            under_way = state.in_flight
            rest = await asyncio.gather(*(call(client) for _ in range(5)))
            status, log = await first

        assert (200, "a.example", 1) == (status, log.endpoint, log.total_attempts)
        assert (1, 0) == (under_way, state.in_flight)
        assert {"b.example"} == {each.endpoint for _, each in rest}

    async def test_retry_does_not_go_to_one_that_was_removed(self):
        """Case 112: nor to the only one that is untried."""
        fleet = Fleet(a=503, b=503)
        group = DynamicEndpointGroup(map(url_of, "ab"), selection=IN_ORDER)
        async with fleet.session(group, retrying(1.0, max_total_attempts=2)) as client:
            task = asyncio.create_task(call(client))
            await asyncio.sleep(0.5)
            group.set_endpoints(map(url_of, "a"))
            await task

        assert "aa" == fleet.text

    async def test_added_one_gets_traffic_at_once(self):
        """Case 113: without history it is asked first."""
        fleet = Fleet(**{name: after(0.01, 200) for name in "abc"})
        group = DynamicEndpointGroup(map(url_of, "ab"))
        async with fleet.session(group) as client:
            for _ in range(20):
                await call(client)
            group.set_endpoints(map(url_of, "abc"))
            await call(client)

        assert "c" == fleet.text[-1]

    async def test_list_that_changes_under_load(self):
        """Case 124: no call fails, none goes where it should not any more."""
        chance, wrong = random.Random(5), []
        fleet = Fleet(**{name: after(0.05, 200) for name in "abcdef"})
        group = DynamicEndpointGroup(map(url_of, "abc"))

        async def check(ctx, request):
            if name_of(ctx.endpoint) not in names(group):
                wrong.append(now())
            await asyncio.sleep(0.05)
            return 200

        fleet.answers = dict.fromkeys("abcdef", check)

        async def change():
            for _ in range(40):
                await asyncio.sleep(0.1)
                group.set_endpoints(
                    map(url_of, chance.sample("abcdef", chance.randint(1, 6)))
                )

        changing = asyncio.create_task(change())
        async with fleet.session(group) as client:
            tasks = []
            while not changing.done():
                tasks.append(asyncio.create_task(call(client)))
                await asyncio.sleep(0.005)
            results = await asyncio.gather(*tasks)

        assert ({200}, []) == ({status for status, _ in results}, wrong)
        assert {0} == {each.in_flight for each in group.states.values()}
        assert set("abcdef") == set(fleet.asked)


class TestLoops:
    """Changes from elsewhere."""

    def test_list_set_between_loops_stays(self):
        """Its state is new in the next loop."""
        fleet = Fleet(a=refused())
        group = DynamicEndpointGroup(map(url_of, "ab"), selection=IN_ORDER)

        async def once():
            async with fleet.session(group) as client:
                await call(client)

        in_virtual_time(once())
        assert {"a": "connect_failures"} == out(group)
        group.set_endpoints(map(url_of, "abc"))
        assert ("abc", {"a": "connect_failures"}) == (names(group), out(group))
        fleet.answers.clear()
        in_virtual_time(once())

        assert ("aa", "abc", {}) == (fleet.text, names(group), out(group))

    async def test_wait_ends_by_a_list_set_from_another_thread_of_the_loop(self):
        """``call_soon_threadsafe`` is the way to its loop."""
        group = DynamicEndpointGroup(selection=IN_ORDER)
        loop = asyncio.get_running_loop()

        def discover():
            loop.call_soon_threadsafe(group.set_endpoints, [url_of("a")])

        async with Fleet().session(group) as client:
            task = asyncio.create_task(call(client))
            await asyncio.sleep(0)
            await asyncio.to_thread(discover)
            status, _ = await task

        assert 200 == status
        assert threading.current_thread() is threading.main_thread()


async def test_absolute_urls_go_by_the_list_of_the_moment():
    """Where all have one origin, that is the service's."""
    fleet = Fleet()
    group = DynamicEndpointGroup(["http://a.example"])
    async with fleet.session(group) as client:
        logs = []
        for given in ("a", "ab", "b"):
            group.set_endpoints(map(url_of, given))
            logs.append((await call(client, "http://a.example/x"))[1])

    assert ["a.example", None, None] == [log.endpoint for log in logs]


async def test_origin_that_changes_during_a_wait_is_none():
    """The call goes where its URL says, and counts for nobody."""
    fleet = Fleet()
    group = DynamicEndpointGroup(
        [Endpoint("http://a.example", weight=0)],
        selection=EndpointSelectionStrategy.in_order(),
    )
    async with fleet.session(group) as client:
        task = asyncio.create_task(call(client, "http://a.example/x"))
        await asyncio.sleep(1.0)
        group.set_endpoints(map(url_of, "bc"))
        status, log = await task

    assert (200, None, ["a"]) == (status, log.endpoint, fleet.asked)


async def test_trial_that_is_due_then_is_given_up():
    """By a call that goes elsewhere; the next one tries it."""
    fleet = Fleet(b=[refused(), 200])
    group = DynamicEndpointGroup(map(url_of, "bc"), selection=IN_ORDER)
    async with fleet.session(group) as client:
        await call(client)
        group.set_endpoints([Endpoint("http://a.example", weight=0)])
        await asyncio.sleep(7.0)
        task = asyncio.create_task(call(client, "http://a.example/x"))
        await asyncio.sleep(1.0)
        group.set_endpoints(map(url_of, "bc"))
        status, _ = await task
        await asyncio.sleep(4.0)
        await call(client)

    assert (200, ["b", "a", "b"], {}) == (status, fleet.asked, out(group))


def test_look_at_the_states_of_a_member_wakes_no_waiter(monkeypatch):
    """Nothing begins by it, in whichever thread: calls may wait in an event loop."""
    woken = []
    first = EndpointGroup.of(url_of("a"))
    whole = first.or_else(EndpointGroup.of(url_of("b")))
    monkeypatch.setattr(whole, "wake", lambda: woken.append(whole))

    assert [Endpoint(url_of("a"))] == [*first.states]
    assert [] == woken
