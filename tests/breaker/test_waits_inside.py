"""Calls inside an attempt, and calls of functions, that wait at an open circuit."""

import asyncio

import pytest
from chains import URL, now, session
from circuits import RestartingServer, breaker_of, end_of, timers, waiting_at

from aioretry_smithy import (
    CircuitBreakerRpcClient,
    CircuitState,
    FailFastError,
    RefreshingClient,
    RequestLog,
    ResponseTimeoutError,
    RetryingRpcClient,
    RetryRule,
    client_decorator,
    rpc,
)

CLOSED, OPEN, HALF_OPEN, FORCED_OPEN = CircuitState


BASE = "http://localhost"


class TestInside:
    """A call inside an attempt that holds the trial."""

    async def test_it_rides_on_the_trial(self):
        """Or it would wait for what waits for it."""
        server = RestartingServer(0.5, answers_in=0.25)
        breaker = breaker_of()
        inner = []

        @client_decorator
        async def fetch_first(delegate, ctx, request):
            inner.append(await end_of(client))
            return await delegate.execute(ctx, request)

        decorator = waiting_at(breaker)
        async with (
            session(server.transport(), decorator) as client,
            session(server.transport(), fetch_first, decorator) as outer,
        ):
            breaker.on_failure()

            assert (1.5, 200) == await end_of(outer)
        assert [(1.25, 200)] == inner

    async def test_one_of_a_call_that_waits_waits_in_line(self):
        """A decorator outside has sent it, before anything is held."""
        server = RestartingServer(0.5, answers_in=0.25)
        breaker = breaker_of()

        @client_decorator
        async def fetch_first(delegate, ctx, request):
            await client.get(f"{URL}/token")
            return await delegate.execute(ctx, request)

        decorator = waiting_at(breaker)
        async with (
            session(server.transport(), decorator) as client,
            session(server.transport(), decorator, fetch_first) as outer,
        ):
            breaker.on_failure()

            assert (1.5, 200) == await end_of(outer)

    async def test_a_fetch_that_waits_rides_on_the_trial_that_waits_for_it(self):
        """Or each would wait for the other."""
        breaker = breaker_of()

        async def fetch():
            async with second.get(f"{URL}/token") as response:
                return str(response.status)

        refreshing = RefreshingClient.new_decorator(fetch)
        first = session([200] * 9, refreshing, base_url=BASE)
        chain = refreshing, waiting_at(breaker, 60.0)
        second = session([200] * 9, *chain, base_url=BASE)
        async with first, second:
            breaker.on_failure()
            trial = asyncio.ensure_future(end_of(second, 0.2))
            other = asyncio.ensure_future(end_of(first, 0.5))

            assert [(1.0, 200)] * 2 == await asyncio.gather(trial, other)
        assert (CircuitState.CLOSED, None) == (breaker.state, breaker._line)

    @pytest.mark.parametrize("turns", range(8))
    async def test_a_fetch_that_is_given_up_hands_the_trial_on(self, turns):
        """Whether it was made the trial by then or not."""
        breaker = breaker_of(trial_request_interval=1000.0)

        async def fetch():
            async with second.get(f"{URL}/token") as response:
                return str(response.status)

        refreshing = RefreshingClient.new_decorator(fetch)
        first = session([200] * 9, refreshing, base_url=BASE)
        second = session([200] * 9, waiting_at(breaker, 60.0))
        async with first, second:
            breaker.on_failure()
            given_up = asyncio.ensure_future(end_of(first, 0.2))
            other = asyncio.ensure_future(end_of(second, 0.5))
            await asyncio.sleep(1.0)
            for _ in range(turns):
                await asyncio.sleep(0)
            given_up.cancel()

            assert (1.0, 200) == await other


class TestFunctions:
    """Calls of functions wait as requests do."""

    async def test_the_time_limit_of_the_attempt_begins_after_the_wait(self):
        """The wait may be longer than it."""
        breaker = breaker_of(3.0)
        began = []

        @rpc(
            CircuitBreakerRpcClient.new_decorator(breaker, wait_for_ready=5.0),
            RetryingRpcClient.new_decorator(
                RetryRule(exceptions=[KeyError]), attempt_timeout=1.0
            ),
        )
        async def fetch(seconds):
            began.append(now())
            await asyncio.sleep(seconds)
            return "it"

        breaker.on_failure()
        assert "it" == await fetch(0.75)
        assert [3.0] == began
        breaker.enter_state(OPEN)
        with pytest.raises(ResponseTimeoutError) as caught:
            await fetch(5.0)

        assert ([3.0, 6.75], 7.75) == (began, now())
        log = RequestLog.of(caught.value)
        assert (3.0, "circuit_breaker") == (log.delay, log.delay_source)

    @pytest.mark.parametrize("retries", [False, True])
    async def test_the_deadline_ends_the_wait(self, retries):
        """Nothing begins after it."""
        breaker = breaker_of(100.0)
        decorators = [CircuitBreakerRpcClient.new_decorator(breaker, wait_for_ready=9)]
        if retries:
            rule = RetryRule(exceptions=[KeyError])
            decorators.append(RetryingRpcClient.new_decorator(rule, attempt_timeout=1))

        @rpc(*decorators, response_timeout=2.0)
        async def fetch():
            raise AssertionError

        breaker.on_failure()
        with pytest.raises(ResponseTimeoutError):
            await fetch()

        assert (2.0, None, 0) == (now(), breaker._line, timers())

    async def test_one_without_a_limit_waits_for_its_patience(self):
        """And is refused."""
        breaker = breaker_of(100.0)

        @rpc(CircuitBreakerRpcClient.new_decorator(breaker, wait_for_ready=5.0))
        async def fetch():
            raise AssertionError

        breaker.on_failure()
        with pytest.raises(FailFastError):
            await fetch()

        assert 5.0 == now()
