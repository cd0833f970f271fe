"""Several rate limits at once, each of which holds; a shared one is asked last."""

import asyncio
import logging
import math

import pytest
from chains import URL, bad_argument, now, raises_exactly, session
from limiters import end_of, ends_of, level_of, tokens

from aioretry_smithy import (
    RateLimit,
    RateLimitError,
    RateLimitingClient,
    RequestLog,
    SessionBuilder,
    unwrap,
)

pytest.importorskip("limits.aio")  # "limits" is a folder of these tests too

from limits.aio.storage import MemoryStorage

from aioretry_smithy._limits.rate_limit import Admission
from aioretry_smithy.limits import SharedRateLimit

limiting = RateLimitingClient.new_decorator


class TestSeveral:
    """A request takes a turn at each of its limits, or at none."""

    async def test_each_limit_holds(self):
        """Here the requests count first, and then the tokens."""
        both = [RateLimit(1, burst=2), tokens(rate=1.0, burst=10)]
        async with session([200] * 5, limiting(both)) as client:
            ends = await ends_of(client, 1, 1, 1, 10, 1)

        assert [0.0, 0.0, 1.0, 3.0, 4.0] == [at for at, _ in ends]

    async def test_nothing_is_taken_while_a_request_waits(self):
        """Of no limit; whoever has but the other one is not held up."""
        requests, many = RateLimit(1, burst=1), tokens(rate=1.0)
        async with session([200] * 3, limiting([requests, many])) as client:
            await end_of(client, 10)
            waiter = asyncio.create_task(end_of(client, 5))
            await asyncio.sleep(2.0)

            assert (1, 1) == (requests.pending, many.pending)
            assert (1.0, 2.0) == (level_of(requests), level_of(many))
            assert (5.0, 200) == await waiter
            assert (0.0, 0.0) == (level_of(requests), level_of(many))

    async def test_a_request_holds_up_those_behind_it_in_each_line(self):
        """First come, first served: also one that needs only one of the limits."""
        requests, many = RateLimit(1, burst=1), tokens(rate=1.0)
        async with (
            session([200] * 2, limiting([requests, many])) as both,
            session([200], limiting(requests)) as alone,
        ):
            await end_of(both, 10)
            heavy = asyncio.create_task(end_of(both, 5))
            await asyncio.sleep(1.0)

            assert (6.0, 200) == await end_of(alone)
            assert (5.0, 200) == await heavy

    async def test_opposite_orders_wait_for_no_one(self):
        """A request is in all of its lines from one moment on."""
        one, two = RateLimit(1, burst=1), RateLimit(1, burst=1)
        async with (
            session([200] * 4, limiting([one, two])) as there,
            session([200] * 4, limiting([two, one])) as back,
        ):
            clients = [there, back] * 4
            ends = await asyncio.gather(*map(end_of, clients))

        assert [(at, 200) for at in range(8)] == ends

    async def test_the_error_names_the_limit_whose_turn_is_latest(self):
        """It says when that is."""
        requests, many = RateLimit(1, burst=1), tokens(rate=1.0)
        chain = limiting([requests, many], timeout=0.5)
        async with session([200], chain) as client:
            await end_of(client, 4)
            errors = []
            for cost in ("1", "10"):
                with pytest.raises(RateLimitError) as caught:
                    await client.get(URL, headers={"weight": cost})
                errors.append((caught.value.limit, caught.value.retry_in))

        assert [(requests, 1.0), (many, 4.0)] == errors

    async def test_who_is_held_up_by_another_limit_is_refused_when_time_is_up(self):
        """How long the request in front waits there is not known beforehand."""
        requests, many = RateLimit(1, burst=5), tokens(rate=1.0)
        async with (
            session([200] * 2, limiting([requests, many])) as client,
            session([], limiting(requests, timeout=7.0)) as other,
        ):
            await end_of(client, 10)
            heavy = asyncio.create_task(end_of(client, 8))
            await asyncio.sleep(0)

            assert (7.0, RateLimitError) == await end_of(other)
            assert (8.0, 200) == await heavy

    async def test_a_cancelled_request_lets_all_others_go(self):
        """In each of its lines."""
        one, two = RateLimit(1, burst=1), tokens(rate=1.0)
        async with (
            session([200] * 2, limiting([one, two])) as both,
            session([200], limiting(one)) as first,
            session([200], limiting(two)) as second,
        ):
            await end_of(both, 10)
            heavy = asyncio.create_task(end_of(both, 9))
            await asyncio.sleep(0)
            light = [asyncio.create_task(end_of(each, 1)) for each in (first, second)]
            await asyncio.sleep(3.0)

            assert not any(each.done() for each in light)

            heavy.cancel()

            assert [(3.0, 200)] * 2 == await asyncio.gather(*light)

    async def test_a_turn_that_comes_with_a_cancellation_is_given_back(self):
        """At all limits; those behind have it."""
        one, two = RateLimit(1, burst=1), tokens(rate=1.0)
        async with session([200] * 3, limiting([one, two])) as client:
            await end_of(client, 10)
            heavy = asyncio.create_task(end_of(client, 9))
            await asyncio.sleep(0)
            light = asyncio.create_task(end_of(client, 1))
            asyncio.get_running_loop().call_at(9.0, heavy.cancel)

            assert (9.0, 200) == await light

        assert heavy.cancelled()
        assert (0.0, 8.0) == (level_of(one), level_of(two))

    async def test_who_gives_up_lets_all_others_go(self):
        """A debt has moved its turn away; it is refused in the end, not before."""
        both = [RateLimit(100), tokens(rate=1.0)]
        async with (
            session([200] * 2, limiting(both, timeout=5.0)) as client,
            session([200], limiting(both)) as patient,
        ):
            response = await client.get(URL, headers={"weight": "10"})
            heavy = asyncio.create_task(end_of(client, 5))
            await asyncio.sleep(0)
            both[1].settle(response, 12)
            await asyncio.sleep(1.0)
            light = asyncio.create_task(end_of(patient, 1))

            assert (5.0, RateLimitError) == await heavy
            assert (5.0, 200) == await light

    @pytest.mark.usefixtures("draw")
    async def test_a_limit_that_learns_may_be_one_of_them(self):
        """All wait for the reset that its answers name."""
        learning = RateLimit.from_headers()
        answers = [(200, {"x-ratelimit-remaining-tokens": "0"}, b""), 200, 200]
        answers[0][1]["x-ratelimit-reset-tokens"] = "6s"
        both = [tokens(rate=1.0), learning]
        async with session(answers, limiting(both)) as client:
            await end_of(client, 1)
            ends = await ends_of(client, 1, 2)

        assert [(6.0, 200)] * 2 == ends

    async def test_each_host_may_have_several(self):
        """The view of limits names them all."""
        decorator = RateLimitingClient.new_per_host_decorator(
            lambda key: [RateLimit(1), tokens()]
        )
        async with session([200] * 2, decorator) as client:
            await end_of(client, 10, "http://a/x")
            await end_of(client, 10, "http://b/x")
            limits = unwrap(client, RateLimitingClient).limits

        assert 0.0 == now()
        assert ["a:80", "a:80#2", "b:80", "b:80#2"] == [*limits]

    async def test_the_standard_chain_takes_them(self):
        """As ``rate``, or made for each host."""
        for rate in ([RateLimit(5), tokens()], lambda host: (RateLimit(5), tokens())):
            builder = SessionBuilder.standard(rate=rate)
            async with builder.build() as client:
                assert unwrap(client, RateLimitingClient) is not None

    def test_it_describes_them(self):
        """In the order in which they were given."""
        chain = limiting([RateLimit(5), RateLimit(9, per=60.0)], timeout=2.0)
        builder = SessionBuilder().decorator(chain)

        both = "[RateLimit(5, 1.0), RateLimit(9, 60.0)]"
        assert f"RateLimitingClient({both}, timeout=2.0)" in builder.describe()

    @pytest.mark.parametrize("limits", [[], [RateLimit(1), 5], "ab", {}, None])
    def test_other_things_are_refused(self, limits):
        """Where the decorator is made."""
        expected = "a number > 0, a RateLimit, or a list of them"
        with pytest.raises(ValueError, match=rf"^limit: .* \(expected: {expected}\)$"):
            limiting(limits)

    def test_the_same_limit_twice_is_refused(self):
        """A request would pay it twice."""
        limit = RateLimit(5)
        with raises_exactly("limit: <list object> (expected: each limit once)"):
            limiting([limit, RateLimit(5), limit])


@pytest.fixture
def storage():
    """In virtual time it goes by the clock of the loop."""
    return MemoryStorage()


def shared_in(storage, rate="1 per 5 second", **settings):
    return SharedRateLimit(storage, rate, key="orders", **settings)


async def outcome_of(client):
    """Make a call; return its end and what it brought."""
    try:
        async with client.get(URL) as response:
            return now(), response.status
    except RateLimitError as error:
        return now(), error.limit, error.retry_in


async def test_a_request_needs_a_turn_at_each(storage):
    """The log has the sum of the waits."""
    both = [shared_in(storage), RateLimit(0.5, burst=1)]
    async with session([200] * 2, limiting(both)) as client:
        await outcome_of(client)
        async with client.get(URL) as response:
            log = RequestLog.of(response)

    assert 5.0 == now()
    assert (5.0, "rate_limit") == (log.delay, log.delay_source)


async def test_without_a_turn_of_the_storage_all_others_are_given_back(storage):
    """The error names the limit that has refused."""
    own, shared = RateLimit(0.1, burst=2), shared_in(storage)
    chain = limiting([own, shared], timeout=1.0)
    async with session([200], chain) as client:
        ends = [await outcome_of(client) for _ in range(2)]

    assert [(0.0, 200), (0.0, shared, 5.0)] == ends
    assert 1.0 == level_of(own)


async def test_a_turn_of_long_ago_is_given_back_when_it_comes(storage):
    """Up to a full bucket, also where that was full meanwhile."""
    own = RateLimit(1, burst=1)
    async with (
        session([200] * 2, limiting([own, shared_in(storage)])) as client,
        session([200], limiting(own)) as alone,
    ):
        await outcome_of(client)
        waiter = asyncio.create_task(outcome_of(client))
        await asyncio.sleep(3.0)
        await outcome_of(alone)
        waiter.cancel()
        await asyncio.wait([waiter])

    assert 3.0 == now()
    assert 1.0 == level_of(own)


async def test_where_the_others_refuse_the_storage_is_not_asked(storage):
    """It takes no turn back."""
    own, shared = RateLimit(0.1, burst=1), shared_in(storage)
    async with session([200] * 2, limiting(own)) as first:
        await outcome_of(first)
    async with session([200], limiting([shared, own], timeout=0.0)) as client:
        assert (0.0, own, 10.0) == await outcome_of(client)
    async with session([200], limiting(shared, timeout=0.0)) as client:
        assert (0.0, 200) == await outcome_of(client)


async def test_a_cost_that_the_storage_never_grants_is_refused_at_once(storage):
    """It waits for no turn of the others, and holds up nobody there."""
    own = RateLimit(0.1, burst=1)
    shared = shared_in(storage, cost=lambda ctx, request: 2)
    async with session([200], limiting(own)) as first:
        await outcome_of(first)
    async with session([], limiting([own, shared])) as client:
        assert (0.0, shared, math.inf) == await outcome_of(client)


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
            return [(await outcome_of(client))[0] for _ in range(many)]

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

    async def test_a_turn_that_opens_as_the_storage_refuses_is_a_wait(
        self, storage, said, monkeypatch
    ):
        """It was not given, and so somebody has to hear of it."""

        async def refuse(latest, deadline):
            return Admission(is_given=False, seconds=0.0)

        shared = shared_in(storage)
        monkeypatch.setattr(shared, "_shared_turn", lambda ctx, request: refuse)

        assert [0.0] == await self.ends([RateLimit(5), shared], 1)
        assert ["would have waited 0.000 s"] == said()

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
            call = asyncio.create_task(outcome_of(client))
            # Its own turn is taken at once, and the storage takes a task.
            await asyncio.sleep(0)
            taken = level_of(own)
            call.cancel()
            await asyncio.wait([call])

        assert (2.0, True) == (taken, call.cancelled())
        assert 3.0 == level_of(own)
