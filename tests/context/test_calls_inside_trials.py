"""A call inside an attempt that is the trial of a circuit."""

from __future__ import annotations

import asyncio

import pytest
from calls_inside import OTHER, Shop, breaking, half_open, place

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitBreakerListener,
    CircuitBreakerRuleWithContent,
    CircuitState,
    ConcurrencyLimit,
    ConcurrencyLimitListener,
    EventCount,
    FailFastError,
    RequestLog,
    new_response,
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

    async def test_trial_that_is_cancelled_gives_its_place_back(self):
        """While its call inside is under way."""
        breaker = half_open()
        async with Shop(breaking(breaker)) as shop:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.5):
                    await shop.get()

            assert (200, 2.5) == await shop.get()

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

    async def test_breaker_with_content_rules(self):
        """It asks for the same permit."""
        rule = CircuitBreakerRuleWithContent.failure(
            on_content=lambda content: content == b"broken"
        )
        breaker = half_open()
        async with Shop(breaking(breaker, rule)) as shop:
            assert (200, 2.0) == await shop.get()

        assert CircuitState.CLOSED is breaker.state

    async def test_one_that_is_only_watched_says_nothing(self, caplog):
        """It would not have been refused."""
        breaker = half_open()
        async with Shop(breaking(breaker, enforce=False)) as shop:
            await shop.get()

        assert [] == caplog.messages
        assert CircuitState.CLOSED is breaker.state

    async def test_fallback_is_not_called(self):
        """Since nothing is refused."""
        asked = []

        def fallback(ctx, request):
            asked.append(request.url.path)
            return new_response(request, 203)

        async with Shop(breaking(half_open(), fallback=fallback)) as shop:
            assert (200, 2.0) == await shop.get()

        assert [] == asked


class TestRefusals:
    """What the error of a request says that came while another one is tried."""

    async def test_trial_is_under_way(self):
        """The circuit is not just open."""
        breaker = half_open()
        async with Shop(breaking(breaker)) as shop:
            trial = asyncio.create_task(shop.get("/plain"))
            await asyncio.sleep(0.5)
            with pytest.raises(FailFastError) as caught:
                await shop.session.get("/plain")
            text = str(caught.value)
            await trial

        expected = "circuit breaker 'orders' is half open: a trial is under way"
        assert f"{expected}, next trial in 59.500 s" == text
        assert text == str(caught.value)
        # A line of a log has room for the beginning.
        shown = RequestLog.of(caught.value).render()
        assert f"FailFastError: {expected[:55]}" in shown

    async def test_open_circuit(self):
        """There is no trial yet."""
        breaker = CircuitBreaker("orders")
        breaker.enter_state(CircuitState.OPEN)
        async with Shop(breaking(breaker)) as shop:
            with pytest.raises(FailFastError) as caught:
                await shop.session.get("/plain")

        expected = "circuit breaker 'orders' is open, next trial in 10.000 s"
        assert expected == str(caught.value)


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
