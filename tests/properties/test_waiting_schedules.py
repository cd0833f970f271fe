"""No schedule of requests that wait at a circuit loses a permit, or a request."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress

import aiohttp
import pytest
from chains import URL, in_virtual_time, now, session
from circuits import breaker_of, timers, waiting_at

from aioretry_smithy import CircuitState

STATES = [*CircuitState]


async def run(chance):
    """Let requests come, fail, take their time and be cancelled, as chance has it."""
    breaker = breaker_of(
        chance.choice([0.5, 1.0]),
        consecutive_failures=chance.randint(1, 3),
        success_threshold=chance.randint(1, 2),
        # So that a permit which gets lost is missed.
        trial_request_interval=1e6,
    )

    async def answer(ctx, request):
        status = chance.choice([200, 200, 503, TimeoutError()])
        await asyncio.sleep(chance.choice([0.0, 0.0, 0.25, 0.5, 1.5]))
        return status

    async def call(client):
        await asyncio.sleep(chance.randint(0, 12) / 4)
        with suppress(aiohttp.ClientError, TimeoutError):
            async with asyncio.timeout(chance.choice([None, 0.5, 1.0, 2.0])):
                (await client.get(URL)).release()

    async def meddle():
        for _ in range(chance.randint(0, 2)):
            await asyncio.sleep(chance.randint(0, 8) / 4)
            breaker.enter_state(chance.choice(STATES))

    patience = chance.choice([0.5, 1.0, 3.0])
    async with session([answer] * 99, waiting_at(breaker, patience)) as client:
        calls = [call(client) for _ in range(chance.randint(1, 20))]
        await asyncio.gather(meddle(), *calls)

    assert now() < 20.0
    assert (None, 0) == (breaker._line, timers())
    if breaker.state is CircuitState.HALF_OPEN:
        # Nothing is in flight.
        assert 0.0 == breaker.retry_in


@pytest.mark.parametrize("seed", range(100))
def test_no_schedule_loses_a_permit(seed):
    """Nobody waits for ever, nothing is left behind, and a trial is to be had."""
    in_virtual_time(run(random.Random(seed)))


@pytest.mark.long
def test_none_of_three_thousand_schedules_loses_a_permit():
    """As above."""
    for seed in range(100, 3100):
        in_virtual_time(run(random.Random(seed)))
