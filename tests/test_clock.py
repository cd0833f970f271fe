"""The time, with and without an event loop."""

import asyncio
import time

import pytest

from aioretry_smithy._clock import loop_time, wall_clock


async def test_inside_a_loop_it_is_the_time_of_the_loop():
    """Virtual time drives whatever asks for the time here."""
    await asyncio.sleep(3600.0)

    assert 3600.0 == loop_time()


def test_without_a_loop_it_is_monotonic():
    """Where there is no loop, there still is a clock."""
    before = time.monotonic()

    assert before <= loop_time() <= time.monotonic()


async def test_virtual_clock_moves_the_time_of_day():
    """So dates of servers are as far away as they are for the program."""
    before = wall_clock()
    await asyncio.sleep(3600.0)

    assert 3600.0 == pytest.approx(wall_clock() - before, abs=1e-6)
    assert abs(before - time.time()) < 60.0


def test_time_of_day_is_that_of_the_machine():
    """In a loop of the usual kind, and without one."""

    async def ask():
        return wall_clock()

    before = time.time()
    with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
        inside = runner.run(ask())

    assert before <= inside <= wall_clock() <= time.time()
