"""A call inside an attempt that is the trial of a circuit."""

from __future__ import annotations

import asyncio

import pytest
from nested_calls import OTHER, Shop, breaking, half_open, place

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitBreakerListener,
    CircuitState,
    ConcurrencyLimit,
    ConcurrencyLimitListener,
    EventCount,
    FailFastError,
)

pytestmark = pytest.mark.virtual_time


class TestTrials:
    """A call inside is part of the trial, and is not counted apart."""

    async def test_trial_takes_more_than_what_is_asked_inside(self):
        """Two trials close this circuit; a call inside is not the second."""
        breaker = half_open(success_threshold=2)
        async with Shop(breaking(breaker)) as shop:
            states = [await shop.get() and breaker.state for _ in range(2)]

        assert [CircuitState.HALF_OPEN, CircuitState.CLOSED] == states

    async def test_failure_inside_is_the_trials_only_if_it_fails_by_it(self):
        """A decorator that can do without changes nothing."""
        breaker = half_open()
        async with Shop(breaking(breaker), inner=500) as shop:
            assert (200, 2.0) == await shop.get()

        assert CircuitState.CLOSED is breaker.state

    async def test_closed_circuit_counts_it_as_ever(self):
        """There is no trial that it could be part of."""
        breaker = CircuitBreaker()
        async with Shop(breaking(breaker), inner=500) as shop:
            await shop.get()

        assert EventCount(success=1, failure=1) == breaker.event_count

    async def test_circuit_that_opens_meanwhile_refuses_it(self):
        """The attempt has no trial, although it has gone through."""
        breaker = CircuitBreaker()
        got = []
        async with Shop(breaking(breaker)) as shop:

            async def ask():
                breaker.enter_state(CircuitState.OPEN)
                got.append(await shop.get("/inner"))

            shop.ask = ask

            assert (200, 1.0) == await shop.get()
            assert [(FailFastError, 0.0)] == got

    async def test_circuit_of_another_host_is_asked(self):
        """It is an object of its own, and may have a trial of its own."""
        breakers = {}

        def made(key):
            return breakers.setdefault(key, half_open())

        per_host = CircuitBreakerClient.new_per_host_decorator(made)
        async with Shop(per_host) as shop:
            shop.ask = lambda: shop.get(OTHER)

            assert (200, 2.0) == await shop.get()
            states = {key: each.state for key, each in breakers.items()}
            closed = CircuitState.CLOSED
            assert {"shop:80": closed, "auth:80": closed} == states

            breakers["auth:80"].enter_state(CircuitState.OPEN)
            breakers["shop:80"].enter_state(CircuitState.HALF_OPEN)
            got = []

            async def ask():
                got.append(await shop.get(OTHER))

            shop.ask = ask

            assert (200, 3.0) == await shop.get()
            assert [(FailFastError, 2.0)] == got

    async def test_one_that_is_only_watched_says_nothing(self, caplog):
        """It would not have been refused."""
        breaker = half_open()
        async with Shop(breaking(breaker, enforce=False)) as shop:
            await shop.get()

        assert [] == caplog.messages
        assert CircuitState.CLOSED is breaker.state


class TestListeners:
    """What a listener starts belongs to the attempt that it hears of."""

    async def test_circuit_breaker(self):
        """The trial is what it hears of."""
        tasks = []

        class Asking(CircuitBreakerListener):
            def on_state_changed(self, circuit_breaker, state):
                if state is CircuitState.HALF_OPEN:
                    tasks.append(asyncio.create_task(shop.get("/inner")))

        breaker = CircuitBreaker("orders", listeners=[Asking()])
        async with Shop(breaking(breaker)) as shop:
            breaker.enter_state(CircuitState.OPEN)
            await asyncio.sleep(10.0)

            assert (200, 11.0) == await shop.get("/plain")
            assert (200, 11.0) == await tasks[0]

    async def test_limit(self):
        """It hears of the limit when the first place is taken."""
        tasks = []

        class Asking(ConcurrencyLimitListener):
            def on_limit_changed(self, limit):
                tasks.append(asyncio.create_task(shop.get("/inner")))

        limit = ConcurrencyLimit.fixed(1, listeners=[Asking()])
        async with Shop(place(limit, max_pending=0)) as shop:
            assert (200, 1.0) == await shop.get("/plain")
            assert (200, 1.0) == await tasks[0]
