"""Time requests by the signals of aiohttp, as far as these come in odd orders."""

import asyncio
from contextvars import copy_context
from types import SimpleNamespace

import pytest
from calls import begin, call_of

from aioretry_smithy._session.timed_connections import (
    TimedRequest,
    _Lookups,
    _sent,
    _timed,
    with_timings,
)

HOST = SimpleNamespace(host="orders.test")


def opened():
    """Return a request that aiohttp has got, and what shows its times."""
    call = call_of(begin())
    timed = TimedRequest(call.loop, call)
    timed.open()
    return timed, lambda: call.connection.shown(call.loop.time())


def ask(lookups, timed):
    """Begin a query, as aiohttp tells of it where it has a cache."""
    lookups.begin(timed, HOST)
    timed.wait_for("dns")


async def test_request_that_joins_a_query_before_it_begins():
    """The task of a query is made first and begins later, before Python 3.12."""
    lookups = _Lookups()
    (first, of_first), (second, of_second) = opened(), opened()

    async def asking():
        ask(lookups, first)
        await asyncio.sleep(2.0)
        lookups.end(first, HOST)

    task = asyncio.ensure_future(asking())
    second.wait_for("connect")
    lookups.join(second, HOST)
    await task
    await asyncio.sleep(1.0)
    second.wait_for(None)

    assert (2.0, 1.0) == (of_first().dns, of_first().connect)
    assert (2.0, 1.0) == (of_second().dns, of_second().connect)


async def test_hit_that_is_one():
    """A query that begins later is not that of a request that knows its address."""
    lookups = _Lookups()
    (first, _), (second, of_second) = opened(), opened()
    second.wait_for("connect")
    lookups.join(second, HOST)
    await asyncio.sleep(1.0)

    async def asking():
        ask(lookups, first)
        await asyncio.sleep(2.0)
        lookups.end(first, HOST)

    await asyncio.create_task(asking())
    second.wait_for(None)

    assert (None, 3.0) == (of_second().dns, of_second().connect)


async def test_query_that_fails_is_forgotten():
    """Nothing is told of it but that its task has ended."""
    lookups = _Lookups()
    (first, _), (second, of_second) = opened(), opened()

    async def asking():
        ask(lookups, first)
        raise OSError(1, "no such host")

    with pytest.raises(OSError, match="no such host"):
        await asyncio.create_task(asking())
    await asyncio.sleep(0)
    second.wait_for("connect")
    lookups.join(second, HOST)
    await asyncio.sleep(1.0)
    second.wait_for(None)

    assert of_second().dns is None


async def test_end_of_an_older_query_leaves_a_later_one_alone():
    """Two ports of one host are asked for side by side."""
    lookups = _Lookups()
    (first, _), (second, _), (third, of_third) = opened(), opened(), opened()

    async def asking(timed, seconds):
        ask(lookups, timed)
        await asyncio.sleep(seconds)
        lookups.end(timed, HOST)

    tasks = [
        asyncio.create_task(asking(*each)) for each in ((first, 1.0), (second, 3.0))
    ]
    await asyncio.sleep(2.0)
    third.wait_for("connect")
    lookups.join(third, HOST)
    await asyncio.wait(tasks)
    third.wait_for(None)

    assert 1.0 == of_third().dns


async def test_query_without_a_task():
    """Its end alone is heard of."""
    lookups = _Lookups()
    (first, _), (second, of_second) = opened(), opened()
    asyncio.get_running_loop().call_soon(ask, lookups, first)
    await asyncio.sleep(1.0)
    second.wait_for("connect")
    lookups.join(second, HOST)
    await asyncio.sleep(2.0)
    lookups.end(first, HOST)
    second.close()

    assert 2.0 == of_second().dns


async def test_request_that_is_over_hears_nothing():
    """A query reports to it all the same, and another task may have its context."""
    timed, shown = opened()
    timed.wait_for("queued")
    await asyncio.sleep(1.0)
    timed.close()
    before = shown()
    timed.wait_for("dns")
    await asyncio.sleep(1.0)
    timed.resolved()
    timed.reuse()
    timed.open()

    assert before == shown()
    assert 1.0 == before.queued


@pytest.mark.parametrize("is_copy", [False, True], ids=["another", "copy"])
async def test_coroutine_that_is_thrown_away_elsewhere(is_copy):
    """It ends in another context, as that of a connection which it has opened."""
    call = call_of(begin())
    times, contexts = [], []

    async def for_ever(*given):
        timed = _sent.get()
        timed.open()
        timed.wait_for("queued")
        times.append(timed)
        contexts.append(copy_context())
        await asyncio.get_running_loop().create_future()

    coroutine = _timed(for_ever, call, call.request)
    copy_context().run(coroutine.send, None)
    await asyncio.sleep(1.0)
    (contexts.pop() if is_copy else copy_context()).run(coroutine.close)
    times[0].wait_for("dns")
    await asyncio.sleep(1.0)

    assert _sent.get(None) is None
    assert 1.0 == call.connection.shown(call.loop.time()).waited


async def test_request_from_elsewhere_is_not_timed():
    """What goes past the chain has a context that nobody reads."""
    (config,) = with_timings({})["trace_configs"]
    (wait,) = config.on_connection_queued_start
    context = config.trace_config_ctx(trace_request_ctx=1)
    await wait(None, context, None)

    assert SimpleNamespace() == context
