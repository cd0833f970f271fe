"""A rate that processes share, beside others: it is asked last."""

from __future__ import annotations

import asyncio
import logging
import math

import pytest
from chains import URL, bad_argument, now, pass_on, raises_exactly, session
from limiters import level_of

pytest.importorskip("limits.aio")  # "limits" is a folder of these tests too

from limits.aio.storage import MemoryStorage

from aioretry_smithy import RateLimit, RateLimitError, RateLimitingClient, RequestLog
from aioretry_smithy.limits import SharedRateLimit

limiting = RateLimitingClient.new_decorator


@pytest.fixture(params=[(), (pass_on,)], ids=["alone", "beside a decorator"])
def beside(request):
    return request.param


@pytest.fixture
def storage():
    """In virtual time it goes by the clock of the loop."""
    return MemoryStorage()


def shared_in(storage, rate="1 per 5 second", **settings):
    return SharedRateLimit(storage, rate, key="orders", **settings)


async def end_of(client):
    """Make a call; return its end and what it brought."""
    try:
        async with client.get(URL) as response:
            return now(), response.status
    except RateLimitError as error:
        return now(), error.limit, error.retry_in


async def test_a_request_needs_a_turn_at_each(storage, beside):
    """The log has the sum of the waits."""
    both = [shared_in(storage), RateLimit(0.5, burst=1)]
    async with session([200] * 2, limiting(both), *beside) as client:
        await end_of(client)
        async with client.get(URL) as response:
            log = RequestLog.of(response)

    assert 5.0 == now()
    assert (5.0, "rate_limit") == (log.delay, log.delay_source)


async def test_without_a_turn_of_the_storage_all_others_are_given_back(storage, beside):
    """The error names the limit that has refused."""
    own, shared = RateLimit(0.1, burst=2), shared_in(storage)
    chain = limiting([own, shared], timeout=1.0)
    async with session([200], chain, *beside) as client:
        ends = [await end_of(client) for _ in range(2)]

    assert [(0.0, 200), (0.0, shared, 5.0)] == ends
    assert 1.0 == level_of(own)


async def test_a_turn_of_long_ago_is_given_back_when_it_comes(storage):
    """Up to a full bucket, also where that was full meanwhile."""
    own = RateLimit(1, burst=1)
    async with (
        session([200] * 2, limiting([own, shared_in(storage)])) as client,
        session([200], limiting(own)) as alone,
    ):
        await end_of(client)
        waiter = asyncio.create_task(end_of(client))
        await asyncio.sleep(3.0)
        await end_of(alone)
        waiter.cancel()
        await asyncio.wait([waiter])

    assert 3.0 == now()
    assert 1.0 == level_of(own)


async def test_where_the_others_refuse_the_storage_is_not_asked(storage):
    """It takes no turn back."""
    own, shared = RateLimit(0.1, burst=1), shared_in(storage)
    async with session([200] * 2, limiting(own)) as first:
        await end_of(first)
    async with session([200], limiting([shared, own], timeout=0.0)) as client:
        assert (0.0, own, 10.0) == await end_of(client)
    async with session([200], limiting(shared, timeout=0.0)) as client:
        assert (0.0, 200) == await end_of(client)


async def test_a_cost_that_the_storage_never_grants_is_refused_at_once(storage, beside):
    """It waits for no turn of the others, and holds up nobody there."""
    own = RateLimit(0.1, burst=1)
    shared = shared_in(storage, cost=lambda ctx, request: 2)
    async with session([200], limiting(own)) as first:
        await end_of(first)
    async with session([], limiting([own, shared]), *beside) as client:
        assert (0.0, shared, math.inf) == await end_of(client)


async def test_a_function_of_the_user_that_raises_gives_all_back(storage):
    """Such as the one that finds the key."""
    own = RateLimit(0.1, burst=1)
    shared = SharedRateLimit(storage, "1/second", key=lambda ctx, request: "")
    async with session([], limiting([own, shared])) as client:
        with bad_argument("key", "", "returns a str that is not empty"):
            await client.get(URL)

    assert 1.0 == level_of(own)


def test_a_list_has_at_most_one(storage):
    """Two cannot be asked last."""
    expected = "at most one limit that processes share"
    with raises_exactly(f"limit: <list object> (expected: {expected})"):
        limiting([shared_in(storage), RateLimit(1), shared_in(storage)])


class TestWatching:
    """With ``enforce=False`` the storage is asked once, and nobody waits for a turn."""

    @pytest.fixture
    def said(self, caplog):
        caplog.set_level(logging.DEBUG, "aioretry_smithy")
        return lambda: [
            record.getMessage().partition(" <")[0].partition(" for ")[0]
            for record in caplog.records
            if record.levelno == logging.DEBUG
        ]

    async def ends(self, limits, many, **settings):
        chain = limiting(limits, enforce=False, **settings)
        async with session([200] * many, chain) as client:
            return [(await end_of(client))[0] for _ in range(many)]

    async def test_it_says_how_long_a_request_would_have_waited(self, storage, said):
        """At the limit whose turn is latest."""
        shared = shared_in(storage)

        assert [0.0] * 2 == await self.ends(shared, 2)
        assert ["would have waited 5.000 s"] == said()

        own = RateLimit(0.1, burst=1)
        assert [0.0] * 2 == await self.ends([own, shared], 2)
        assert ["would have waited 5.000 s", "would have waited 10.000 s"] == said()[1:]

    async def test_it_says_which_would_have_been_refused(self, storage, said):
        """These take no turn of any limit."""
        own = RateLimit(0.1, burst=3)

        assert [0.0] * 2 == await self.ends([own, shared_in(storage)], 2, timeout=1.0)
        assert ["would have refused"] == said()
        assert 2.0 == level_of(own)

    async def test_errors_of_functions_of_the_user_are_logged(self, storage, said):
        """Nobody is refused for them."""
        own = RateLimit(0.1, burst=3)
        shared = SharedRateLimit(storage, "1/second", key=lambda ctx, request: "")

        assert [0.0] == await self.ends([own, shared], 1)
        assert ["would have refused"] == said()
        assert 3.0 == level_of(own)

    async def test_who_is_cancelled_while_it_asks_gives_all_back(self, storage):
        """It was not sent."""
        own = RateLimit(0.1, burst=3)
        chain = limiting([own, shared_in(storage)], enforce=False)
        async with session([], chain) as client:
            call = asyncio.create_task(end_of(client))
            # Its own turn is taken at once, and the storage takes a task.
            await asyncio.sleep(0)
            taken = level_of(own)
            call.cancel()
            await asyncio.wait([call])

        assert (2.0, True) == (taken, call.cancelled())
        assert 3.0 == level_of(own)
