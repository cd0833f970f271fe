"""The choice of the endpoint that costs least, by its times and failures."""

from __future__ import annotations

import asyncio
import itertools
import math

import pytest
from balanced import Fleet, asked, call, group_of, state_of
from chains import after

from aioretry_smithy import Endpoint, EndpointGroup, EndpointSelectionStrategy
from aioretry_smithy._endpoints.state import LatencyEstimate

PEAK_EWMA = EndpointSelectionStrategy.peak_ewma()


class TestPeakEwma:
    """The quicker one of two, as far as it is idle."""

    @pytest.mark.usefixtures("seeded")
    async def test_each_gets_a_first_request(self):
        """Case 52: before any gets a second one, and one at a time."""
        fleet = Fleet()

        text = await asked(fleet, group_of("abcde", selection=PEAK_EWMA), 5)

        assert "abcde" == "".join(sorted(text))

    @pytest.mark.usefixtures("seeded")
    async def test_first_request_is_one_at_a_time(self):
        """Case 52: while it is under way, more go by the slowest latency known."""
        fleet = Fleet(a=after(0.01, 200), b=after(0.01, 200), c=after(1.0, 200))
        group = group_of("abc", selection=PEAK_EWMA)
        async with fleet.session(group) as client:
            await asyncio.gather(*(call(client) for _ in range(3)))
            # A fourth endpoint without history would get one; this one has one.
            state_of(group, "c").estimate = LatencyEstimate(10.0)
            tasks = [asyncio.create_task(call(client)) for _ in range(2)]
            await asyncio.sleep(0)
            in_flight = state_of(group, "c").in_flight
            await asyncio.gather(*tasks)

        assert 1 == in_flight

    @pytest.mark.usefixtures("seeded")
    async def test_slow_one_is_left_alone(self):
        """Case 49: ten times slower, it gets 1.5 % or less."""
        fleet = Fleet(a=after(0.01, 200), b=after(0.01, 200), c=after(0.1, 200))
        group = group_of("abc", selection=PEAK_EWMA)
        async with fleet.session(group) as client:
            tasks = []
            for _ in range(2000):
                tasks.append(asyncio.create_task(call(client)))
                await asyncio.sleep(0.005)
            await asyncio.gather(*tasks)

        assert fleet.text.count("c") / 2000 <= 0.015

    @pytest.mark.usefixtures("seeded")
    async def test_slow_one_returns_once_that_has_decayed(self):
        """Case 50: the estimate falls while nobody asks, so that it is asked again."""
        slow = [0.1]

        async def respond(ctx, request):
            await asyncio.sleep(slow[0])
            return 200

        fleet = Fleet(a=after(0.01, 200), b=respond)
        group = group_of("ab", selection=EndpointSelectionStrategy.peak_ewma(2.0))
        async with fleet.session(group) as client:
            for _ in range(20):
                await call(client)
            slow[0] = 0.01
            fleet.asked.clear()
            for _ in range(400):
                await call(client)
                await asyncio.sleep(0.05)
            after_decay = fleet.text

        assert "b" not in after_decay[:20]
        assert after_decay[-100:].count("b") >= 20

    async def test_failure_costs_the_penalty_until_the_next_success(self):
        """Case 51: a fast failure does not attract; with no ejection at all."""
        fleet = Fleet(a=[200, 503, 200])
        group = group_of("ab", selection=PEAK_EWMA, outlier_detection=None)
        async with fleet.session(group) as client:
            for _ in range(30):
                await call(client)
                if state_of(group, "a").penalty:
                    break
            failed = state_of(group, "a").latency
            fleet.asked.clear()
            for _ in range(30):
                await call(client)
            meanwhile = fleet.text
            await asyncio.sleep(1.0)
            fleet.asked.clear()
            await call(client)
            chance = fleet.text

        assert (1.0, {"b"}, "a") == (failed, {*meanwhile}, chance)
        assert 0.0 == state_of(group, "a").latency

    async def test_one_chance_a_penalty(self):
        """After each further failure the same time passes."""
        fleet = Fleet(a=503, b=after(0.01, 200))
        group = group_of(
            "ab",
            selection=EndpointSelectionStrategy.peak_ewma(failure_penalty=2.0),
            outlier_detection=None,
        )
        async with fleet.session(group) as client:
            for _ in range(100):
                await call(client)
                await asyncio.sleep(0.1)

        times = [moment for moment, name in fleet.times if name == "a"]
        assert 5 <= len(times) <= 6
        assert min(later - one for one, later in itertools.pairwise(times)) >= 2.0

    async def test_two_that_failed_get_their_chances_in_turn(self):
        """One that is being tried is not tried by the next call too."""
        fleet = Fleet(a=503, b=503, c=after(0.01, 200))
        group = group_of("abc", selection=PEAK_EWMA, outlier_detection=None)
        async with fleet.session(group) as client:
            for _ in range(3):
                await call(client)
            await asyncio.sleep(2.0)
            fleet.asked.clear()
            await asyncio.gather(*(call(client) for _ in range(5)))

        assert "ab" == fleet.text[:2]

    async def test_no_penalty_no_chance(self):
        """With 0 a failure costs what it took."""
        strategy = EndpointSelectionStrategy.peak_ewma(failure_penalty=0.0)
        fleet = Fleet(a=503)
        group = group_of("a", selection=strategy, outlier_detection=None)
        async with fleet.session(group) as client:
            await call(client)

        assert (None, 0.0) == (
            state_of(group, "a").latency,
            state_of(group, "a").penalty,
        )

    @pytest.mark.parametrize(
        ("drawn", "expected"),
        [((0.0, 0.0), "a"), ((0.99, 0.0), "a"), ((0.5, 0.99), "b")],
    )
    async def test_lower_cost_of_the_two_that_are_drawn(self, dice, drawn, expected):
        """Latency x (in flight + 1) / weight."""
        group = EndpointGroup.of(
            Endpoint("http://a.example", weight=2.0),
            "http://b.example",
            "http://c.example",
            selection=PEAK_EWMA,
        )
        fleet = Fleet(
            **{n: after(s, 200) for n, s in (("a", 0.03), ("b", 0.02), ("c", 0.04))}
        )
        async with fleet.session(group) as client:
            for _ in range(3):
                await call(client)
            fleet.asked.clear()
            dice(*drawn)
            await call(client)

        assert expected == fleet.text

    async def test_requests_under_way_count(self, dice):
        """Twice as quick, but with two under way, is no better."""
        group = group_of("ab", selection=PEAK_EWMA)
        fleet = Fleet(a=after(0.01, 200), b=after(0.02, 200))
        async with fleet.session(group) as client:
            for _ in range(2):
                await call(client)
            fleet.asked.clear()
            dice(0.0)
            state_of(group, "a").in_flight = 2
            await call(client)

        assert "b" == fleet.text

    @pytest.mark.parametrize(
        ("name", "arguments"),
        [
            ("decay", (0,)),
            ("decay", (math.nan,)),
            ("failure_penalty", (10.0, -1)),
        ],
    )
    def test_bad_settings_are_refused(self, name, arguments):
        """Each with its name."""
        with pytest.raises(ValueError, match=f"^{name}: "):
            EndpointSelectionStrategy.peak_ewma(*arguments)
