"""The time, with and without an event loop."""

import asyncio
import time

from aioretry_smithy._clock import loop_time


async def test_inside_a_loop_it_is_the_time_of_the_loop():
    """Virtual time drives whatever asks for the time here."""
    await asyncio.sleep(3600.0)

    assert 3600.0 == loop_time()


def test_without_a_loop_it_is_monotonic():
    """Where there is no loop, there still is a clock."""
    before = time.monotonic()

    assert before <= loop_time() <= time.monotonic()
