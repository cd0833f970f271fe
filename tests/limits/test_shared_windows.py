"""Rates that storages keep, by windows and by what requests cost."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from math import floor
from typing import Any

import pytest
from chains import Scripted, chain, in_virtual_time, now, pass_on, retrying
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("limits.aio")  # "limits" is a folder of these tests too
pytest.importorskip("limits.aio")

import limits
from limits.aio.storage import MemoryStorage, Storage
from limits.aio.strategies import MovingWindowRateLimiter

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerClient,
    HttpRequest,
    RateLimitError,
    RateLimitingClient,
    SessionBuilder,
    new_response,
)
from aioretry_smithy.limits import SharedRateLimit, StoredCounter, seconds_until
from aioretry_smithy.testing import VirtualTimeLoop, simulate

RATE = limits.parse("10 per 8 seconds")
LENGTH = 8
SOON = 0.001
EVENTS = st.lists(
    st.tuples(
        st.sampled_from([0.0, 0.5, 1.0, 3.0, 7.75, 8.0, 17.0]), st.integers(1, 10)
    ),
    max_size=30,
)
"""The seconds before each turn is asked for, and its cost."""


class Asked(MemoryStorage):
    """Memory that is asked in virtual time too, as any other storage."""

    STORAGE_SCHEME = None

    async def acquire_sliding_window_entry(self, *arguments, **options):
        return await super().acquire_sliding_window_entry(*arguments, **options)

    async def get_sliding_window(self, *arguments, **options):
        return await super().get_sliding_window(*arguments, **options)


async def answers(rate, events):
    """Return when turns were asked for, what they cost, and the answers."""
    found = []
    for seconds, cost in events:
        await asyncio.sleep(seconds)
        found.append((now(), cost, await rate.take("orders", cost)))
    return found


async def end(storage):
    """Wait for the task in which memory forgets."""
    if storage.timer is not None:
        storage.timer.cancel()
        await asyncio.gather(storage.timer, return_exceptions=True)


@given(EVENTS)
def test_no_schedule_spends_more_than_the_counter_permits(events):
    """What a window has; in a stretch that lies across two, what both have."""

    async def play():
        return await answers(StoredCounter(MemoryStorage(), RATE), events)

    taken = [(at, cost) for at, cost, seconds in in_virtual_time(play()) if not seconds]

    def spent(begin, until):
        return sum(cost for at, cost in taken if begin <= at < until)

    for at, _ in taken:
        begin = floor(at / LENGTH) * LENGTH
        before, present = spent(begin - LENGTH, begin), spent(begin, at + 1e-9)
        assert spent(at, at + LENGTH) <= 2 * RATE.amount
        assert spent(begin, begin + LENGTH) <= RATE.amount
        counts = floor(before * (begin + LENGTH - at) / LENGTH)
        assert counts + present <= RATE.amount


@given(EVENTS, st.integers(1, 10))
def test_a_wait_is_as_long_as_it_has_to_be(events, cost):
    """After it there is a turn, unless somebody else has taken it; before it, none."""

    async def play(early):
        rate = StoredCounter(MemoryStorage(), RATE)
        await answers(rate, events)
        seconds = await rate.take("orders", cost)
        if seconds:
            await asyncio.sleep(seconds - early)
            return await rate.take("orders", cost)
        return None

    assert in_virtual_time(play(0.0)) in {0.0, None}
    assert in_virtual_time(play(SOON + 1e-4)) != 0.0


@given(EVENTS)
def test_virtual_time_counts_as_memory_does(events):
    """By the clock of the loop in place of that of the machine."""

    async def play():
        storage = Asked()
        virtual = await answers(StoredCounter(MemoryStorage(), RATE), events)
        begun = now()
        with pytest.MonkeyPatch.context() as patch:
            # The clock of the machine shows a whole number of windows more.
            patch.setattr(time, "time", lambda: 100 * LENGTH + now() - begun)
            asked = await answers(StoredCounter(storage, RATE), events)
            await end(storage)
        shifted = [(at - begun, *rest) for at, *rest in asked]
        assert [pytest.approx(one, abs=1e-6) for one in virtual] == shifted

    in_virtual_time(play())


@pytest.mark.parametrize(
    ("counts", "seconds"),
    [
        ((10, 0, 0.0, 0, 0.0), 0.0),
        ((0, 10, 8.0, 0, 8.0), 7.2),
        ((4, 10, 8.0, 0, 8.0), 4.0),
        ((4, 10, 2.0, 0, 2.0), 0.0),
        ((4, 10, 8.0, 4, 8.0), 7.2),
        ((4, 0, 0.0, 10, 3.0), 7.0),
        ((9, 0, 0.0, 10, 3.0), 3.0),
        ((0, 0, 0.0, 10, 3.0), 10.2),
    ],
)
def test_waits_follow_the_windows(counts, seconds):
    """What was spent before weighs less and less; the present window ends first."""
    most, *rest = counts

    assert SOON + seconds == pytest.approx(seconds_until(most, LENGTH, *rest))


async def test_each_storage_key_and_rate_has_a_counter_of_its_own():
    """In virtual time too."""
    storage = MemoryStorage()
    rates = [StoredCounter(storage, RATE), StoredCounter(storage, RATE)]
    other = StoredCounter(storage, limits.parse("10 per 9 seconds"))

    assert 0.0 == await rates[0].take("orders", 10)
    assert 0.0 < await rates[1].take("orders", 10)
    assert 0.0 == await rates[1].take("others", 10)
    assert 0.0 == await other.take("orders", 10)
    assert 0.0 == await StoredCounter(MemoryStorage(), RATE).take("orders", 10)


async def test_a_look_changes_nothing(monkeypatch):
    """By it a storage is found that was away."""
    monkeypatch.setattr(time, "time", now)
    storage = Asked()
    rate = StoredCounter(storage, RATE)
    await rate.probe("orders")

    assert 0.0 == await rate.take("orders", 10)
    await end(storage)


class Plain(Storage):
    """A storage without any window that moves."""

    STORAGE_SCHEME = None
    base_exceptions = ConnectionError

    async def incr(self, *arguments, **options):
        raise AssertionError

    get = get_expiry = check = reset = clear = incr


def test_a_storage_without_such_a_counter_is_refused():
    """Before anything is asked of it."""
    with pytest.raises(ValueError, match="^storage: .*Plain.* sliding window counter"):
        StoredCounter(Plain(), RATE)


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


async def ends_at(limit, many, **settings):
    """Make so many calls at once; return when they were answered."""
    async with Scripted([200] * many, limiting(limit, **settings)) as scripted:

        async def end():
            return (await scripted.get(), now())

        return await asyncio.gather(*(end() for _ in range(many)))


async def test_the_window_moves_with_the_clock_of_the_loop(storage):
    """A minute is over at once."""
    limit = SharedRateLimit(storage, "2/minute", key="orders")
    ends = [await ends_at(limit, 1)]
    await asyncio.sleep(20.0)
    ends.append(await ends_at(limit, 4))
    expected = [0.0, 20.0, 60.0, 80.0, 120.0]

    assert [(200, at) for at in expected] == [*ends[0], *ends[1]]


async def test_limits_with_one_storage_rate_and_key_are_one():
    """As in real time; another key or rate has turns of its own."""
    storage = MemoryStorage()
    kinds = ("1/minute", "a"), ("1/minute", "a"), ("1/minute", "b"), ("1/hour", "a")
    all_limits = [SharedRateLimit(storage, rate, key=key) for rate, key in kinds]
    statuses = [await ends_at(limit, 1, timeout=0.0) for limit in all_limits]

    assert [200, RateLimitError, 200, 200] == [status for [(status, _)] in statuses]


def test_each_loop_begins_anew():
    """Its clock does too; what a loop before it did is not to be waited for."""
    storage = MemoryStorage()
    for _ in range(2):
        limit = SharedRateLimit(storage, "1/minute", key="orders")
        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            assert [(200, 0.0), (200, 60.0)] == runner.run(ends_at(limit, 2))


def test_in_real_time_the_storage_keeps_the_rate():
    """Others who use it see the turns."""
    rate = limits.parse("9/hour")

    async def left():
        storage = MemoryStorage()
        await ends_at(SharedRateLimit(storage, rate, key="orders"), 2)
        await storage.timer
        return await MovingWindowRateLimiter(storage).get_window_stats(rate, "orders")

    assert 7 == asyncio.run(left()).remaining


def shared():
    """Make a chain whose rate is above that of the calls."""
    limit = SharedRateLimit("async+memory://", "40/second", key="orders")
    return SessionBuilder.standard(rate=limit)


def test_processes_of_a_simulation_share_a_storage():
    """A rate of two a second is all that the server sees of nine calls a second."""
    storage = MemoryStorage()

    def chained():
        limit = SharedRateLimit(storage, "2/second", key="orders")
        return chain(lambda delegate: delegate, limiting(limit, timeout=1.0))

    settings: dict[str, Any] = {"rate": 9, "capacity": 99, "outage": None}
    runs = simulate({"shared": chained}, clients=3, duration=20, **settings).runs

    assert {2} == {*runs["shared"].attempts}


MEMORY = "async+memory://"
URL = "http://a/"


def cost(ctx, request):
    """Take what a header says, which stands for an estimate."""
    return float(request.headers.get("Tokens", 1))


def with_costs(rate="10 per 8 seconds", cost=cost, storage=MEMORY, **settings):
    return SharedRateLimit(storage, rate, key="orders", cost=cost, **settings)


async def end_with(client, tokens):
    """Make a call; return its end and its status, or what was raised."""
    try:
        async with client.get(URL, headers={"Tokens": f"{tokens}"}) as response:
            return round(now(), 2), response.status
    except (RateLimitError, ValueError) as error:
        return round(now(), 2), type(error)


async def ends_of(limit, *tokens, outside=(), **settings):
    """Make calls at once; return their ends and statuses."""
    async with Scripted([200] * 99, limiting(limit, **settings), *outside) as scripted:
        calls = (end_with(scripted.session, each) for each in tokens)
        return await asyncio.gather(*calls)


@pytest.mark.parametrize(
    "outside",
    [(), (retrying(0.5),), (pass_on, retrying(0.5))],
    ids=["alone", "retried", "beside a decorator"],
)
async def test_requests_wait_for_what_they_cost(outside):
    """What was spent in the window before weighs less and less."""
    ends = await ends_of(with_costs(), 6, 4, 6, 1, outside=outside)

    assert [(0.0, 200), (0.0, 200), (12.0, 200), (12.8, 200)] == ends


async def test_a_fraction_is_rounded_up():
    """A storage counts whole numbers."""
    assert [(0.0, 200), (0.0, 200), (0.0, RateLimitError)] == await ends_of(
        with_costs("3/minute"), 0.001, 1.5, 0.5, timeout=0.0
    )


async def test_what_costs_nothing_passes():
    """Without a question, and past those that wait."""
    limit = with_costs()
    async with Scripted([200] * 9, limiting(limit)) as scripted:
        calls = [
            asyncio.create_task(end_with(scripted.session, each)) for each in (10, 10)
        ]
        await asyncio.sleep(1.0)

        assert (1.0, 200) == await end_with(scripted.session, 0)
        assert 1 == limit.pending
        await asyncio.gather(*calls)


async def test_a_cost_above_the_limit_is_refused_for_good():
    """There is one attempt; the error says both numbers, and no breaker counts it."""
    breaker = CircuitBreaker(minimum_request_threshold=1)
    counting = CircuitBreakerClient.new_decorator(breaker)
    limit = with_costs()
    async with Scripted([200], limiting(limit), counting, retrying(0.5)) as scripted:
        with pytest.raises(RateLimitError) as caught:
            await scripted.session.get(URL, headers={"Tokens": "10.5"})

        assert (200, 0.0) == (await scripted.get(), now())

    error = caught.value
    assert (limit, math.inf, 11, 10) == (
        *(error.limit, error.retry_in),
        *(error.cost, error.burst),
    )
    assert str(error).endswith("cost=cost): a cost of 11 is above the burst of 10")
    assert 0 == breaker.event_count.failure


async def asking(ctx, request):
    """Not a plain function."""


@pytest.mark.parametrize(
    ("argument", "settings"),
    [
        ("cost: 5", {"cost": 5}),
        ("cost: <function asking", {"cost": asking}),
        ("actual: <function cost", {"actual": cost}),
        ("actual: <function cost", {"cost": None, "actual": cost}),
    ],
)
def test_bad_arguments_are_refused(argument, settings):
    """With the reason."""
    with pytest.raises(ValueError, match=f"^{argument}") as caught:
        with_costs(**settings)

    reason = "no storage takes back what it has counted"
    assert ("actual" in settings) == (reason in str(caught.value))


@pytest.mark.parametrize("cost", [None, cost], ids=["alike", "with costs"])
async def test_nothing_is_settled(cost):
    """For the same reason."""
    response = new_response(HttpRequest("GET", URL))
    with pytest.raises(ValueError, match="^limit: .*no storage takes back what"):
        with_costs(cost=cost).settle(response, 5)


def test_it_describes_itself_with_its_cost():
    """In the chain as well."""
    limit = with_costs()

    expected = "SharedRateLimit(MemoryStorage, '10 per 8 seconds', key='orders', "
    assert f"{expected}cost=cost)" == repr(limit)
    assert repr(limit) in SessionBuilder().decorator(limiting(limit)).describe()
