"""Estimates of how long endpoints take, and the choice by them.

Of the cases of endpoints.md (f): 49 to 52, 80, 81, 97, 103.
"""

import asyncio
import itertools
import math
import random
from types import SimpleNamespace

import pytest
from balanced import ROUND_ROBIN, Fleet, asked, call, group_of, out, state_of
from chains import after, refused, retrying

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitState,
    Endpoint,
    EndpointGroup,
    EndpointGroupListener,
    EndpointSelectionStrategy,
    RateLimit,
    RateLimitingClient,
    request_options,
)
from aioretry_smithy._endpoints.ejection import Choice
from aioretry_smithy._endpoints.state import LatencyEstimate
from aioretry_smithy._endpoints.visit import learn

DECAYED = 1 / math.e
"""What is left of an estimate after one decay."""


@pytest.mark.parametrize(
    ("notes", "now", "expected"),
    [
        pytest.param([("note", 0.1, 0.0), ("note", 0.5, 0.1)], 0.1, 0.5, id="rises"),
        pytest.param(
            [("note", 1.0, 0.0), ("note", 0.1, 10.0)],
            10.0,
            DECAYED + 0.1 * (1 - DECAYED),
            id="falls by the age of what was before",
        ),
        pytest.param([("note", 1.0, 5.0)], 5.0, 1.0, id="is as it was noted"),
        pytest.param([("note", 1.0, 5.0)], 25.0, DECAYED**2, id="falls unasked"),
        pytest.param(
            [("note", 1.0, 0.0), ("note_refusal", 0.001, 7.0)],
            7.0,
            1.0,
            id="a refusal renews what was",
        ),
        pytest.param([("note_refusal", 0.3, 0.0)], 0.0, 0.3, id="a first refusal"),
        pytest.param(
            [("note", 0.1, 0.0), ("note_refusal", 0.5, 1.0)],
            1.0,
            0.5,
            id="a slow refusal is slow",
        ),
        pytest.param(
            [("note", 0.5, 0.0), ("note_at_least", 0.1, 0.0)],
            0.0,
            0.5,
            id="one given up lowers nothing",
        ),
        pytest.param(
            [("note", 0.5, 0.0), ("note_at_least", 2.0, 1.0)],
            1.0,
            2.0,
            id="one given up raises",
        ),
        pytest.param(
            [("note", 0.5, 0.0), ("note_at_least", 0.2, 10.0)],
            10.0,
            0.2,
            id="one given up raises what has fallen",
        ),
        pytest.param(
            [("note", 5.0, 0.0), ("restart", 0.2, 1.0)], 1.0, 0.2, id="restarts"
        ),
        pytest.param([("note", 1.0, 0.0)], 1e9, 0.0, id="falls to nothing"),
        pytest.param([], 7.0, 0.0, id="is nothing at first"),
    ],
)
def test_estimate(notes, now, expected):
    """Rises at once, falls in time, also while nobody asks."""
    estimate = LatencyEstimate(10.0)
    for how, took, at in notes:
        getattr(estimate, how)(took, at)

    assert pytest.approx(expected) == estimate.at(now)
    assert bool(notes) is estimate.is_known


def test_old_estimates_still_differ():
    """Longer ago than a float can tell, one is still twice the other."""
    slow, quick = LatencyEstimate(0.5), LatencyEstimate(0.5)
    slow.note(0.2, 0.0)
    quick.note(0.1, 0.0)

    assert pytest.approx(2.0) == slow.at(1e6) / quick.at(1e6)


def test_answer_from_long_before_the_last_one():
    """Its verdict came late: it says nothing new, and is no error."""
    estimate = LatencyEstimate(0.01)
    estimate.note(0.02, 20.0)
    estimate.note(0.01, 10.0)

    assert 0.0 <= estimate.at(20.0) <= 0.02


def latencies(group):
    """Return the estimates of all."""
    return [each.latency for each in group.states.values()]


async def test_waits_for_places_further_in_are_none():
    """It runs from sending."""
    limit = RateLimitingClient.new_decorator(RateLimit(1, per=2.0))
    fleet = Fleet(a=after(0.25, 200))
    group = group_of("a")
    async with fleet.session(
        group, limit, retrying(0.5, attempt_timeout=9.0)
    ) as client:
        await call(client)
        await call(client)

    assert pytest.approx(0.25) == latencies(group)[0]


@pytest.mark.parametrize(("first", "drawn"), [("a", 0.0), ("b", 0.99)])
async def test_replica_that_answers_404_draws_no_traffic(monkeypatch, first, drawn):
    """It is not the quickest: its share is no more than that of the other."""
    chance = random.Random(9)
    begin = [drawn]
    monkeypatch.setattr(
        "aioretry_smithy._endpoints.selection.chance",
        lambda: begin.pop() if begin else chance.random(),
    )
    group = group_of("ab", selection=PEAK_EWMA)
    fleet = Fleet(a=after(0.01, 200), b=after(0.0017, 404))
    async with fleet.session(group) as client:
        for _ in range(600):
            task = asyncio.create_task(call(client))
            await asyncio.sleep(0.005)
            await task

    assert first == fleet.text[0]
    assert fleet.text.count("b") <= 360


async def test_answer_of_4xx_does_not_lower_what_is_known():
    """Nor is it slow from then on."""
    group = group_of("ab", selection=ROUND_ROBIN)
    fleet = Fleet(a=[after(0.1, 200), 404, 404], b=after(0.5, 200))
    async with fleet.session(group) as client:
        for _ in range(6):
            await call(client)

    assert pytest.approx(0.1, rel=0.2) == latencies(group)[0]


async def test_trial_that_is_answered_404_is_no_quick_return():
    """It comes back as slow as any."""
    group = group_of("ab")
    fleet = Fleet(a=[refused(), 404], b=after(0.5, 200))
    async with fleet.session(group, retrying(0.0)) as client:
        await call(client)
        await asyncio.sleep(6.0)
        await call(client, method="POST")
        await call(client)

    assert {} == out(group)
    assert pytest.approx(0.5, rel=0.2) == latencies(group)[0]


async def test_listener_sees_the_latency_of_the_answer_that_brings_one_back():
    """Its failure counts no more."""
    heard = []

    class Listener(EndpointGroupListener):
        def on_returned(self, group, endpoint):
            heard.append(group.states[endpoint].latency)

    group = group_of("ab", listener=Listener())
    fleet = Fleet(a=[refused(), after(0.25, 200)])
    async with fleet.session(group, retrying(0.0)) as client:
        await call(client)
        with request_options(endpoint=Endpoint("http://a.example")):
            await call(client)

    assert [0.25] == heard


async def test_failure_costs_what_it_took_where_that_is_more():
    """Case 51: three seconds are three."""
    group = group_of("a", outlier_detection=None)
    async with Fleet(a=after(3.0, 503)).session(group) as client:
        await call(client)

    assert [3.0] == latencies(group)
    assert 4.0 == state_of(group, "a").chance_at


async def test_open_circuit_without_a_time_sets_nobody_aside_for_long():
    """Case 103: FORCED_OPEN does not say until when; the call goes elsewhere."""
    breakers = []

    def make(key):
        breakers.append(CircuitBreaker(key))
        if key[0] == "a":
            breakers[-1].enter_state(CircuitState.FORCED_OPEN)
        return breakers[-1]

    fleet, group = Fleet(), group_of("ab")
    inside = CircuitBreakerClient.new_per_host_decorator(make)
    async with fleet.session(group, inside, retrying(0.5)) as client:
        statuses = [(await call(client))[0] for _ in range(3)]

    assert ([200] * 3, "bbb") == (statuses, fleet.text)


async def test_outcome_that_nobody_has_recorded_ends_now():
    """As of an attempt that was handed on before its answer came."""
    group = group_of("a")
    async with Fleet().session(group) as client:
        await call(client)
    state = state_of(group, "a")
    outcome = SimpleNamespace(ended=None, status=200)
    record = SimpleNamespace(outcome=outcome, started=0.0, sent_at=0.0)
    await asyncio.sleep(0.5)
    now = SimpleNamespace(loop=asyncio.get_running_loop())
    ctx = SimpleNamespace(call=now, record=record)
    learn(ctx, Choice(state, "orders"), None, verdict=True)

    assert pytest.approx(0.5) == state.latency


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
        late = after(0.01, 503)
        fleet = Fleet(a=late, b=late, c=after(0.01, 200))
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

    async def test_quicker_one_is_known_after_a_long_silence(self, dice):
        """What is left of both is next to nothing, in the same proportion."""
        group = group_of("ab", selection=EndpointSelectionStrategy.peak_ewma(0.5))
        fleet = Fleet(a=after(0.02, 200), b=after(0.01, 200))
        async with fleet.session(group) as client:
            for _ in range(2):
                await call(client)
            fleet.asked.clear()
            await asyncio.sleep(3600.0)
            dice(0.0)
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
