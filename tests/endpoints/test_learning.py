"""What is learned from how requests end.

Of the cases of endpoints.md (f): 51, 80, 81, 97.
"""

from __future__ import annotations

import asyncio
import random
from types import SimpleNamespace

import pytest
from balanced import ROUND_ROBIN, Fleet, call, group_of, out, state_of
from chains import after, refused, retrying

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitState,
    EndpointSelectionStrategy,
    RateLimit,
    RateLimitingClient,
)
from aioretry_smithy._endpoints.visit import learn

PEAK_EWMA = EndpointSelectionStrategy.peak_ewma()


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
    learn(ctx, state, None, verdict=True)

    assert pytest.approx(0.5) == state.latency
