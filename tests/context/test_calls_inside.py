"""A call inside an attempt, in virtual time: what it rides on, and what it does not."""

from __future__ import annotations

import asyncio

import pytest
from nested_calls import OTHER, Shop, breaking, half_open, place, rate

from aioretry_smithy import (
    CircuitBreakerRpcClient,
    CircuitState,
    ConcurrencyLimit,
    ConcurrencyLimitError,
    ConcurrencyLimitingClient,
    FailFastError,
    RateLimit,
    rpc,
)

pytestmark = pytest.mark.virtual_time


class TestPlaces:
    """A call inside counts in the place of its attempt, once."""

    async def test_calls_inside_at_once_all_ride_on_one_place(self):
        """The limit is exceeded for so long."""
        limit = ConcurrencyLimit.fixed(1)
        async with Shop(place(limit, max_pending=0)) as shop:

            async def ask():
                await asyncio.gather(*(shop.get("/inner") for _ in range(3)))
                assert 1 == limit.in_flight

            shop.ask = ask

            assert (200, 2.0) == await shop.get()
            assert 3 == shop.most
            assert 0 == limit.in_flight

    async def test_calls_inside_calls_inside(self):
        """Any attempt around counts, also through another session in between."""
        first, second = ConcurrencyLimit.fixed(1), ConcurrencyLimit.fixed(1)
        async with (
            Shop(place(first, timeout=0.0)) as shop,
            Shop(place(second, timeout=0.0)) as other,
        ):
            shop.ask = other.get
            other.ask = shop.ask_once

            assert (200, 3.0) == await shop.get()

    async def test_another_session_with_the_same_limit(self):
        """The limit counts, not the session."""
        limit = ConcurrencyLimit.fixed(1)
        async with (
            Shop(place(limit, timeout=0.0)) as shop,
            Shop(place(limit, timeout=0.0)) as other,
        ):
            shop.ask = lambda: other.get("/plain")

            assert (200, 2.0) == await shop.get()
            assert [("/plain", 0.0)] == other.sent

    async def test_place_of_another_host_is_waited_for(self):
        """It is an object of its own."""
        per_host = ConcurrencyLimitingClient.new_per_host_decorator(lambda key: 1)
        async with Shop(per_host) as shop:
            shop.ask = lambda: shop.get(OTHER)
            busy = asyncio.create_task(shop.get(OTHER, seconds=5))
            await asyncio.sleep(0)

            assert (200, 7.0) == await shop.get()
            await busy

    async def test_attempts_that_ride_teach_nothing(self):
        """One place, one sample."""
        samples = []

        class Noting(ConcurrencyLimit):
            limit = 1

            def on_sample(self, round_trip, in_flight, dropped):
                samples.append((round_trip, in_flight, dropped))

        async with Shop(place(Noting()), inner=503) as shop:
            await shop.get()

        assert [(2.0, 1, False)] == samples

    async def test_one_that_is_only_watched_would_let_it_through(self, caplog):
        """Nothing is said to have been refused."""
        async with Shop(place(max_pending=0, enforce=False)) as shop:
            await shop.get()

        assert [] == caplog.messages

    async def test_what_an_attempt_still_waits_for_is_not_held(self):
        """A task that was started outside, in a wait for a place, waits too."""
        limit = ConcurrencyLimit.fixed(1)
        async with Shop(place(limit)) as shop:
            busy = asyncio.create_task(shop.get("/plain", seconds=3))
            await asyncio.sleep(0)

            assert (200, 4.0) == await shop.get("/plain")
            await busy


class TestTasks:
    """Tasks that begin in an attempt are part of it, for as long as it lasts."""

    @staticmethod
    def starting(shop, tasks, seconds):
        async def later():
            await asyncio.sleep(seconds)
            return await shop.get("/inner")

        async def ask():
            tasks.append(asyncio.create_task(later()))

        return ask

    async def test_task_rides_while_the_attempt_lasts(self):
        """At a limit that has no other place."""
        tasks = []
        async with Shop(place(max_pending=0)) as shop:
            shop.ask = self.starting(shop, tasks, 0.5)

            assert (200, 1.0) == await shop.get()
            assert (200, 1.5) == await tasks[0]

    @pytest.mark.parametrize("kind", ["place", "trial", "rate"])
    async def test_task_that_outlives_its_attempt_is_free(self, kind):
        """What others hold by then is theirs."""
        breaker = half_open()
        chain, expected = {
            "place": (place(max_pending=0), (ConcurrencyLimitError, 5.0)),
            "trial": (breaking(breaker), (FailFastError, 5.0)),
            "rate": (rate(RateLimit(1, per=4.0)), (200, 9.0)),
        }[kind]
        tasks = []
        async with Shop(chain) as shop:
            shop.ask = self.starting(shop, tasks, 5.0)
            await shop.get()
            await asyncio.sleep(3.0)
            if kind == "trial":
                breaker.enter_state(CircuitState.HALF_OPEN)
            other = asyncio.create_task(shop.get("/plain", seconds=2))

            assert expected == await tasks[0]
            assert (200, 6.0) == await other


class TestFunctions:
    """The same holds for the functions of ``rpc()``."""

    async def test_call_of_a_function_in_itself(self):
        """It is part of the trial of the call around."""
        breaker = half_open()

        @rpc(CircuitBreakerRpcClient.new_decorator(breaker), name="count")
        async def count(number):
            return number and 1 + await count(number - 1)

        assert 3 == await count(3)
        assert CircuitState.CLOSED is breaker.state

    async def test_session_with_the_same_circuit_breaker(self):
        """In a function, and a function in an attempt of the session."""
        breaker = half_open()
        guarded = rpc(CircuitBreakerRpcClient.new_decorator(breaker), name="clock")
        async with Shop(breaking(breaker)) as shop:

            @guarded
            async def clock():
                return await shop.get("/plain")

            assert (200, 1.0) == await clock()
            assert CircuitState.CLOSED is breaker.state
            breaker.enter_state(CircuitState.HALF_OPEN)

            async def ask():
                shop.ask = shop.ask_once
                await clock()

            shop.ask = ask
            assert (200, 3.0) == await shop.get()
            assert CircuitState.CLOSED is breaker.state
