"""A call inside an attempt, in virtual time: what it rides on, and what it does not."""

import asyncio

import pytest
from chains import now, session
from nested_calls import BASE, OTHER, Shop, breaking, half_open, place, rate

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitBreakerListener,
    CircuitBreakerRpcClient,
    CircuitState,
    ConcurrencyLimit,
    ConcurrencyLimitError,
    ConcurrencyLimitingClient,
    ConcurrencyLimitListener,
    EventCount,
    FailFastError,
    RateLimit,
    RateLimitingClient,
    client_decorator,
    new_response,
    rpc,
)


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


class TestRates:
    """A turn inside is on credit: at once, and owed by those that come later."""

    async def test_turn_is_owed_by_those_that_come_later(self):
        """One call in 40 s, of which one inside is a whole one."""
        async with Shop(rate(RateLimit(1, per=40.0))) as shop:
            assert (200, 2.0) == await shop.get()
            assert (200, 81.0) == await shop.get("/plain")

    async def test_cost_is_charged_whole(self):
        """What it is, by the function of the user's."""
        costs = {"/orders": 10, "/inner": 4, "/plain": 1}
        limit = RateLimit(
            10, per=10.0, cost=lambda ctx, request: costs[request.url.path]
        )
        async with Shop(rate(limit)) as shop:
            assert (200, 2.0) == await shop.get()
            assert (200, 6.0) == await shop.get("/plain")

    async def test_other_limits_of_a_list_are_waited_for(self):
        """Only one of them is held by the attempt around."""
        held, other = RateLimit(1, per=40.0), RateLimit(1, per=10.0)
        async with (
            Shop(rate(held)) as shop,
            Shop(rate(other)) as busy,
            Shop(rate([held, other])) as both,
        ):
            shop.ask = lambda: both.get("/plain")
            await busy.get("/plain")

            assert (200, 12.0) == await shop.get()
            assert [("/plain", 10.0)] == both.sent
            assert (200, 82.0) == await shop.get("/plain")

    async def test_rate_that_processes_share(self):
        """A storage lends nothing: where it has no turn left, none is counted."""
        limits = pytest.importorskip("aioretry_smithy.limits")
        shared = limits.SharedRateLimit(
            "async+memory://", "1 per 40 second", key="orders"
        )
        async with Shop(rate(shared)) as shop:
            assert (200, 2.0) == await shop.get()

    async def test_rate_of_another_host_is_waited_for(self):
        """It is an object of its own."""
        per_host = RateLimitingClient.new_per_host_decorator(
            lambda key: RateLimit(1, per=40.0)
        )
        async with Shop(per_host) as shop:
            await shop.get(OTHER)
            shop.ask = lambda: shop.get(OTHER)

            assert (200, 42.0) == await shop.get()

    async def test_one_that_is_only_watched_says_nothing(self, caplog):
        """It would not have waited."""
        async with Shop(rate(RateLimit(1, per=40.0), enforce=False)) as shop:
            await shop.get()

        assert [] == caplog.messages


class TestLearntRates:
    """A call inside is no probe, and does not wait for one."""

    @staticmethod
    async def closed(answers, ask):
        """Build a session on a server that has nothing left, for 10 s at most."""
        limit = RateLimit.from_headers(max_wait=10.0)
        full = new_response_of(429, {"Retry-After": "99"})
        sent = []

        async def answer(ctx, request):
            sent.append((request.url.path, now()))
            return await answers(ctx, request)

        @client_decorator
        async def asking(delegate, ctx, request):
            if request.url.path == "/orders":
                await ask(client)
            return await delegate.execute(ctx, request)

        client = session([full, *[answer] * 20], asking, rate(limit), base_url=BASE)
        await client.get("/plain")
        return client, sent

    async def test_call_inside_the_probe_goes_out_at_once(self, draw):
        """Others wait for the answer to the probe itself."""

        async def ask(client):
            assert 200 == (await client.get("/inner")).status

        async def answers(ctx, request):
            await asyncio.sleep(1.0)
            return 200

        client, sent = await self.closed(answers, ask)
        async with client:
            order = asyncio.create_task(client._request("GET", "/orders"))
            await asyncio.sleep(0)
            plain = asyncio.create_task(client._request("GET", "/plain"))
            await asyncio.gather(order, plain)

        assert [("/inner", 10.0), ("/orders", 11.0), ("/plain", 12.0)] == sent

    async def test_what_it_is_told_is_learnt(self):
        """Others wait for the time that the server has named to it."""

        async def ask(client):
            assert 429 == (await client.get("/inner")).status

        async def answers(ctx, request):
            if request.url.path == "/inner":
                return new_response(request, 429, headers={"Retry-After": "5"})
            return 200

        client, sent = await self.closed(answers, ask)
        async with client:
            await client.get("/orders")
            await client.get("/plain")

        assert ["/inner", "/orders", "/plain"] == [path for path, _ in sent]
        assert sent[1][1] + 5.0 <= sent[2][1]


def new_response_of(status, headers):
    return lambda ctx, request: new_response(request, status, headers=headers)
