"""Rates that memory keeps, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from chains import Scripted, chain, now

pytest.importorskip("limits.aio")

import limits
from limits.aio.storage import MemoryStorage
from limits.aio.strategies import MovingWindowRateLimiter

from aioretry_smithy import RateLimitError, RateLimitingClient, SessionBuilder
from aioretry_smithy.limits import SharedRateLimit
from aioretry_smithy.testing import VirtualTimeLoop, simulate

limiting = RateLimitingClient.new_decorator


class Own(MemoryStorage):
    """Memory with a class of its own."""

    STORAGE_SCHEME = None


STORAGES: dict[str, Callable[[], Any]] = {
    "uri": lambda: "async+memory://",
    "storage": MemoryStorage,
    "subclass": Own,
}


@pytest.fixture(params=STORAGES.values(), ids=STORAGES)
def storage(request):
    return request.param()


async def ends_of(limit, many, **settings):
    """Make so many calls at once; return when they were answered."""
    async with Scripted([200] * many, limiting(limit, **settings)) as scripted:

        async def end():
            return (await scripted.get(), now())

        return await asyncio.gather(*(end() for _ in range(many)))


async def test_the_window_moves_with_the_clock_of_the_loop(storage):
    """A minute is over at once."""
    limit = SharedRateLimit(storage, "2/minute", key="orders")
    ends = [await ends_of(limit, 1)]
    await asyncio.sleep(20.0)
    ends.append(await ends_of(limit, 4))
    expected = [0.0, 20.0, 60.0, 80.0, 120.0]

    assert [(200, at) for at in expected] == [*ends[0], *ends[1]]


async def test_a_refusal_says_when_there_is_more(storage):
    """In virtual seconds."""
    limit = SharedRateLimit(storage, "1/minute", key="orders")
    await ends_of(limit, 1)
    await asyncio.sleep(20.0)
    async with Scripted([200], limiting(limit, timeout=5.0)) as scripted:
        with pytest.raises(RateLimitError) as caught:
            await scripted.session.get("http://a/")

    assert (20.0, 40.0) == (now(), caught.value.retry_in)


async def test_limits_with_one_storage_rate_and_key_are_one():
    """As in real time; another key or rate has turns of its own."""
    storage = MemoryStorage()
    kinds = ("1/minute", "a"), ("1/minute", "a"), ("1/minute", "b"), ("1/hour", "a")
    all_limits = [SharedRateLimit(storage, rate, key=key) for rate, key in kinds]
    statuses = [await ends_of(limit, 1, timeout=0.0) for limit in all_limits]

    assert [200, RateLimitError, 200, 200] == [status for [(status, _)] in statuses]


def test_each_loop_begins_anew():
    """Its clock does too; what a loop before it did is not to be waited for."""
    storage = MemoryStorage()
    for _ in range(2):
        limit = SharedRateLimit(storage, "1/minute", key="orders")
        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            assert [(200, 0.0), (200, 60.0)] == runner.run(ends_of(limit, 2))


def test_in_real_time_the_storage_keeps_the_rate():
    """Others who use it see the turns."""
    rate = limits.parse("9/hour")

    async def left():
        storage = MemoryStorage()
        await ends_of(SharedRateLimit(storage, rate, key="orders"), 2)
        await storage.timer
        return await MovingWindowRateLimiter(storage).get_window_stats(rate, "orders")

    assert 7 == asyncio.run(left()).remaining


def shared():
    """Make a chain whose rate is above that of the calls."""
    limit = SharedRateLimit("async+memory://", "40/second", key="orders")
    return SessionBuilder.standard(rate=limit)


def test_a_simulation_without_an_outage_loses_no_call():
    """And is the same each time."""
    first, again = (
        simulate(
            {"shared": shared}, clients=2, rate=20, capacity=40, outage=None, duration=9
        )
        for _ in range(2)
    )

    assert 1.0 == first.runs["shared"].success
    assert first == again


def test_processes_of_a_simulation_share_a_storage():
    """A rate of two a second is all that the server sees of nine calls a second."""
    storage = MemoryStorage()

    def chained():
        limit = SharedRateLimit(storage, "2/second", key="orders")
        return chain(lambda delegate: delegate, limiting(limit, timeout=1.0))

    settings: dict[str, Any] = {"rate": 9, "capacity": 99, "outage": None}
    runs = simulate({"shared": chained}, clients=3, duration=20, **settings).runs

    assert {2} == {*runs["shared"].attempts}
