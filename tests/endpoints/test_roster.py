"""The endpoints of a group in one event loop.

Of the cases of endpoints.md (f): 87 (ranks, and what follows), 89, 122 (of rosters).
"""

from __future__ import annotations

import asyncio

import pytest
from balanced import Fleet, call, group_of, name_of, out, state_of, url_of
from chains import SAFELY, after, now, refused, retrying

from aioretry_smithy import (
    DynamicEndpointGroup,
    Endpoint,
    EndpointGroup,
    OutlierDetection,
)
from aioretry_smithy._endpoints.discovery import Listed

pytestmark = pytest.mark.usefixtures("shortest_ejections")


def names(states):
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

        assert "ab" == names(roster.well)
        assert ("cab", [1, 0, 0]) == (
            names(roster.states),
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

        assert ("ab", ()) == (names(roster.well), roster.healthy())


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
        assert "a" == names(group._roster.due)

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

    assert len(group._roster._left) <= 12
