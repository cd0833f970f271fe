"""Hedging cuts the slowest answers at a small cost, in virtual time."""

from __future__ import annotations

import asyncio
import runpy
from contextlib import suppress
from pathlib import Path

import pytest
from chains import URL, after, session
from races import hedging

from aioretry_smithy import (
    HedgingDelay,
    RetryBudget,
    RetryingClient,
    RetryStrategy,
    capture_logs,
)
from aioretry_smithy.testing import VirtualTimeLoop

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "hedging_tail.py"
P95 = HedgingDelay.percentile(0.95)


@pytest.fixture(scope="module")
def example():
    """The functions of the example that measures it."""
    return runpy.run_path(str(EXAMPLE))


def measure(example, delay, calls):
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        times, requests = runner.run(example["times_of"](delay, calls))
    return example["quantile"](times, 0.99), example["quantile"](times, 0.999), requests


@pytest.mark.slow
def test_a_twentieth_more_requests_cuts_the_tail(example):
    """Of the slowest hundredth most goes, in a few thousand calls already."""
    slow, _, _ = measure(example, None, 3000)
    quick, _, requests = measure(example, P95, 3000)

    assert quick < 0.25 * slow
    assert 1.03 < requests <= 1.055


@pytest.mark.long
@pytest.mark.release
def test_the_slowest_thousandth_takes_a_tenth(example):
    """For at most 5.5 % more requests: lognormal, with 2 % that take 300 ms longer."""
    _, slow, alone = measure(example, None, 20_000)
    _, quick, requests = measure(example, P95, 20_000)

    assert 1.0 == alone
    assert quick <= 0.1 * slow
    assert requests <= 1.055


class TestOutage:
    """Hedges stop when a server is down, since each costs as much as a retry."""

    async def hedges_in(self, answer, calls):
        """Return how many hedges each of some calls had, one call after the other."""
        budget = RetryBudget(capacity=5.0)
        retries = RetryingClient.new_decorator(RetryStrategy.never(), limiter=budget)
        decorators = hedging(0.05, limiter=budget), retries

        def answers():
            while True:
                yield answer

        with capture_logs() as logs:
            async with session(answers(), *decorators, timeout=1.0) as client:
                for _ in range(calls):
                    with suppress(TimeoutError):
                        await client.get(URL)
        return [log.total_attempts - 1 for log in logs]

    async def test_hedges_stop_within_the_budget(self):
        """After three calls in a row that got nothing, whatever they got."""
        silent = await self.hedges_in(after(9.0, 200), 20)
        failing = await self.hedges_in(503, 20)

        assert [1, 1, 1] + [0] * 17 == silent
        assert [1, 1, 1] + [0] * 17 == failing

    async def test_slow_answers_have_hedges_for_a_tenth_of_the_calls(self):
        """In the long run, as the budget says, when each call would like one."""
        hedges = await self.hedges_in(after(0.5, 200), 120)

        assert 5 + 115 / 10 - 1 <= sum(hedges) <= 5 + 120 / 10
