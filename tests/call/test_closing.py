"""Waits of calls whose session is closed meanwhile: all of them end at once."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from chains import NOW, URL, now, pass_on, retrying, session
from circuits import breaker_of, timers, waiting_at

from aioretry_smithy import (
    CircuitState,
    ConcurrencyLimit,
    ConcurrencyLimitingClient,
    DynamicEndpointGroup,
    LoadBalancingClient,
    RateLimit,
    RateLimitingClient,
    RefreshingClient,
    RequestLog,
    RetryStrategy,
    client_decorator,
)
from aioretry_smithy.testing import ScriptedTransport

BASE = "http://localhost"
BEGUN, CLOSED_AT = 0.0625, 0.125


def at_a_circuit():
    breaker = breaker_of(100.0)
    breaker.enter_state(CircuitState.OPEN)
    return waiting_at(breaker, 60.0)


def for_a_place():
    limit = ConcurrencyLimit.fixed(1)
    return ConcurrencyLimitingClient.new_decorator(limit, timeout=60.0)


def for_a_rate():
    return RateLimitingClient.new_decorator(RateLimit(1, per=60.0))


def for_a_shared_rate():
    pytest.importorskip("limits.aio")
    from aioretry_smithy.limits import SharedRateLimit  # noqa: PLC0415

    limit = SharedRateLimit("async+memory://", "1/minute", key="orders")
    return RateLimitingClient.new_decorator(limit)


def for_a_token():
    async def fetch():
        await asyncio.Future()

    return RefreshingClient.new_decorator(fetch)


def for_an_endpoint():
    group = DynamicEndpointGroup(selection_timeout=60.0)
    return LoadBalancingClient.new_decorator(group, service=BASE)


WAITS = [
    at_a_circuit,
    for_a_place,
    for_a_rate,
    for_a_shared_rate,
    for_a_token,
    for_an_endpoint,
]
waits = pytest.mark.parametrize("wait", WAITS, ids=[each.__name__ for each in WAITS])


async def hang(ctx, request):
    """Hold what the request holds, for ever."""
    await asyncio.Future()


@pytest.fixture
async def held():
    """The calls of others, which hold a place or have taken a turn."""
    tasks = []
    yield tasks
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def held_by_another(decorator, tasks):
    """Let another session have what there is."""
    other = session([hang, hang], decorator, base_url=BASE)

    async def call():
        async with other:
            await other.get(URL)

    tasks.append(asyncio.ensure_future(call()))
    await asyncio.sleep(BEGUN)


@waits
@pytest.mark.parametrize(
    "others", [(), (pass_on, retrying(RetryStrategy.failsafe(NOW)))]
)
async def test_each_ends_as_a_call_of_a_closed_session(wait, others, held):
    """At once, and nothing is tried again."""
    decorator = wait()
    await held_by_another(decorator, held)
    transport = ScriptedTransport([200])
    client = session(transport, decorator, *others, base_url=BASE)
    before = timers()
    task = asyncio.ensure_future(client.get(URL))
    await asyncio.sleep(CLOSED_AT - BEGUN)
    assert not task.done()
    await client.close()
    with pytest.raises(RuntimeError, match="Session is closed") as caught:
        await task

    assert (CLOSED_AT, 0) == (now(), len(transport.requests))
    assert RequestLog.of(caught.value).total_attempts <= 1
    assert before == timers()


@waits
async def test_one_that_begins_after_the_close_is_none(wait, held):
    """A decorator outside has kept the call for a while."""
    decorator = wait()
    await held_by_another(decorator, held)

    @client_decorator
    async def delayed(delegate, ctx, request):
        await asyncio.sleep(1.0)
        return await delegate.execute(ctx, request)

    client = session([], decorator, retrying(0.5), delayed, base_url=BASE)
    task = asyncio.ensure_future(client.get(URL))
    await asyncio.sleep(CLOSED_AT)
    await client.close()
    with pytest.raises(RuntimeError, match="Session is closed"):
        await task

    assert BEGUN + 1.0 == now()


@pytest.mark.parametrize("turns", range(6))
@waits
async def test_one_that_is_cancelled_as_well_is_cancelled(wait, turns, held):
    """By its caller, in the same moment or a little later."""
    decorator = wait()
    await held_by_another(decorator, held)
    client = session([], decorator, base_url=BASE)
    task = asyncio.ensure_future(client.get(URL))
    await asyncio.sleep(CLOSED_AT - BEGUN)
    await client.close()
    for _ in range(turns):
        await asyncio.sleep(0)
    is_over = task.done()
    task.cancel()
    with pytest.raises((RuntimeError, asyncio.CancelledError)) as caught:
        await task

    assert is_over == (caught.type is RuntimeError)
    assert CLOSED_AT == now()


async def test_what_it_gets_in_that_moment_goes_to_the_next_one():
    """A place that comes as the session is closed is not lost."""
    limit = ConcurrencyLimit.fixed(1)
    decorator = ConcurrencyLimitingClient.new_decorator(limit)

    async def short(ctx, request):
        await asyncio.sleep(CLOSED_AT)
        return 200

    one, other = session([short, 200], decorator), session([200], decorator)
    async with other:
        first = asyncio.ensure_future(one.get(URL))
        await asyncio.sleep(0)
        lost = asyncio.ensure_future(one.get(URL))
        await asyncio.sleep(0)
        kept = asyncio.ensure_future(other.get(URL))
        await asyncio.sleep(CLOSED_AT)
        await one.close()
        with suppress(RuntimeError):
            await first
        with suppress(RuntimeError):
            await lost
        assert 200 == (await kept).status
    assert (0, 0) == (limit.in_flight, limit.pending)
