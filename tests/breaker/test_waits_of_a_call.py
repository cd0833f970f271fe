"""Waits of a call at circuits: in attempts, inside them, of listeners and functions."""

import asyncio
from contextlib import suppress

import pytest
from chains import NOW, SAFELY, URL, now, retrying, session
from circuits import RestartingServer, breaker_of, end_of, timers, waiting_at

from aioretry_smithy import (
    AttemptTimeoutError,
    Backoff,
    CircuitBreakerClient,
    CircuitBreakerListener,
    CircuitBreakerRpcClient,
    CircuitState,
    FailFastError,
    HedgingClient,
    RefreshingClient,
    RequestLog,
    ResponseTimeoutError,
    RetryingRpcClient,
    RetryRule,
    RetryStrategy,
    SessionBuilder,
    client_decorator,
    rpc,
)

KEEP_TRYING = RetryRule(statuses=[503], backoff=NOW)
A_SECOND_LATER = RetryRule(statuses=[503], backoff=Backoff.fixed(1.0))


async def test_attempts_share_one_patience():
    """Each of which is the next trial, and fails."""
    server = RestartingServer(1e9)
    breaker = breaker_of(2.0)
    chain = waiting_at(breaker, 5.0), retrying(KEEP_TRYING)
    async with session(server.transport(), *chain) as client:
        assert (5.0, FailFastError) == await end_of(client)

    assert [0.0, 2.0, 4.0] == server.asked


async def test_one_that_has_waited_so_long_is_refused_at_once():
    """It stands in no line."""
    server = RestartingServer(1e9)
    breaker = breaker_of(5.0)
    chain = waiting_at(breaker, 5.0), retrying(KEEP_TRYING)
    async with session(server.transport(), *chain) as client:
        breaker.on_failure()
        with pytest.raises(FailFastError) as caught:
            await client.get(URL)

    assert ([5.0], 5.0, None) == (server.asked, now(), breaker._line)
    log = RequestLog.of(caught.value)
    assert [5.0, 0.0] == [log.delay, log.children[0].delay]


async def test_what_passes_between_the_waits_is_none():
    """Attempts and backoffs have limits of their own."""
    server = RestartingServer(1e9, took=0.5)
    breaker = breaker_of(2.0)
    chain = waiting_at(breaker, 5.0), retrying(A_SECOND_LATER)
    async with session(server.transport(), *chain) as client:
        # Half of each window has passed when it begins to wait.
        assert (14.0, FailFastError) == await end_of(client)

    assert [0.0, 2.5, 5.0, 7.5, 10.0, 12.5] == server.asked


async def test_circuits_of_all_kinds_share_it():
    """Four seconds at that of the method, and one at that of the host."""
    server = RestartingServer(1e9)
    of_host, of_method = breaker_of(100.0), breaker_of(4.0)
    chain = (
        CircuitBreakerClient.new_per_host_decorator(
            lambda key: of_host, wait_for_ready=5.0
        ),
        CircuitBreakerClient.new_per_method_decorator(
            lambda key: of_method, wait_for_ready=6.0
        ),
    )
    async with session(server.transport(), *chain) as client:
        of_method.on_failure()
        of_host.on_failure()

        assert (5.0, FailFastError) == await end_of(client)
    assert [] == server.asked


async def test_hedges_that_wait_together_count_once():
    """And none of them waits for longer than the call may."""
    server = RestartingServer(1e9)
    breaker = breaker_of(100.0)
    chain = waiting_at(breaker, 5.0), HedgingClient.new_decorator(2.0, max_hedges=1)
    async with session(server.transport(), *chain) as client:
        breaker.on_failure()

        assert (5.0, FailFastError) == await end_of(client)
    assert [] == server.asked


async def test_the_attempt_after_two_hedges_has_the_rest():
    """One of which was the trial while the other went on waiting."""
    server = RestartingServer(1e9)
    breaker = breaker_of(2.0)
    hedging = HedgingClient.new_decorator(0.5, max_hedges=1)
    chain = waiting_at(breaker, 5.0), hedging, retrying(KEEP_TRYING)
    async with session(server.transport(), *chain) as client:
        breaker.on_failure()

        assert (5.0, FailFastError) == await end_of(client)
    assert [2.0, 4.0] == server.asked


async def test_a_wait_that_was_given_up_is_part_of_it():
    """By a decorator that sends the request anew."""
    breaker = breaker_of(100.0)

    @client_decorator
    async def impatient(delegate, ctx, request):
        with suppress(TimeoutError):
            async with asyncio.timeout(2.0):
                return await delegate.execute(ctx, request)
        return await delegate.execute(ctx, request)

    async with session([], waiting_at(breaker, 5.0), impatient) as client:
        breaker.on_failure()

        assert (5.0, FailFastError) == await end_of(client)


@pytest.mark.parametrize("window", [2.0, 5.0])
async def test_functions_have_one_too(window):
    """In all their attempts."""
    breaker = breaker_of(window)
    rule = RetryRule(exceptions=[ConnectionError], backoff=NOW)

    @rpc(
        CircuitBreakerRpcClient.new_decorator(breaker, wait_for_ready=5.0),
        RetryingRpcClient.new_decorator(rule, attempt_timeout=1.0),
    )
    async def fetch():
        raise ConnectionError

    breaker.on_failure()
    with pytest.raises(FailFastError):
        await fetch()

    assert 5.0 == now()


async def test_the_time_of_an_attempt_of_a_function_counts_after_it():
    """Of one that hangs, too: it is cut when it has had all of it."""
    breaker = breaker_of(2.0)

    @rpc(
        CircuitBreakerRpcClient.new_decorator(breaker, wait_for_ready=5.0),
        RetryingRpcClient.new_decorator(
            RetryStrategy.never(), attempt_timeout=1.0, max_total_attempts=1
        ),
    )
    async def hang():
        await asyncio.Event().wait()

    breaker.on_failure()
    with pytest.raises(AttemptTimeoutError):
        await hang()

    assert 3.0 == now()


async def test_a_lone_caller_of_the_standard_chain_hears_in_time():
    """Though it is the next trial each time."""
    server = RestartingServer(1e9)
    builder = SessionBuilder.standard(logging=None, inside=[server.transport()])
    async with builder.build() as client:
        ends = [await end_of(client) for _ in range(4)]

    began = 0.0
    for end, result in ends:
        # Backoffs come on top.
        assert end - began <= 5.0 + 7.5
        assert result in {503, FailFastError}
        began = end


@pytest.mark.parametrize(
    ("asked", "sent", "source"), [(2, 3.0, "circuit_breaker"), (4, 4.0, "retry_after")]
)
async def test_what_a_server_asks_for_comes_first(asked, sent, source):
    """Then the rest of the window is waited for, if there is one."""
    busy = 503, {"Retry-After": f"{asked}"}, b""
    chain = waiting_at(breaker_of(3.0), 5.0), retrying(SAFELY)
    async with session([busy, 200], *chain) as client:
        response = await client.get(URL)

    first, _ = RequestLog.of(response).children
    assert (sent, sent, source) == (now(), first.delay, first.delay_source)


CLOSED, OPEN, HALF_OPEN, FORCED_OPEN = CircuitState


BASE = "http://localhost"


class TestListeners:
    """Listeners hear of states, and of what is refused."""

    async def test_one_that_closes_the_circuit_lets_all_go(self):
        """From within the event."""

        class Hasty(CircuitBreakerListener):
            def on_state_changed(self, circuit_breaker, state):
                if state is HALF_OPEN:
                    circuit_breaker.enter_state(CLOSED)

        server = RestartingServer(0.5)
        breaker = breaker_of(listeners=[Hasty()])
        async with session(server.transport(), waiting_at(breaker)) as client:
            await end_of(client)
            ends = await asyncio.gather(*(end_of(client, 0.1) for _ in range(3)))

        assert [(1.0, 200)] * 3 == ends

    async def test_what_one_sends_is_part_of_the_trial(self):
        """Though the timer of another has made the request the trial."""
        sent = []

        class Caller(CircuitBreakerListener):
            def on_state_changed(self, circuit_breaker, state):
                if state is HALF_OPEN:
                    sent.append(asyncio.ensure_future(end_of(client)))

        server = RestartingServer(0.5, answers_in=0.25)
        breaker = breaker_of(listeners=[Caller()])
        async with session(server.transport(), waiting_at(breaker, 2.0)) as client:
            await end_of(client)
            first = asyncio.ensure_future(end_of(client, 0.1))
            second = asyncio.ensure_future(end_of(client, 0.2))
            await asyncio.sleep(0.5)
            first.cancel()

            assert (1.25, 200) == await second
            assert [(1.25, 200)] == [await each for each in sent]


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

    @pytest.mark.parametrize("turns", range(8))
    async def test_a_fetch_may_be_given_up_as_its_patience_ends(self, turns):
        """It was given nothing that could be handed on."""
        breaker = breaker_of(100.0)
        raised = []

        async def fetch():
            try:
                return await second.get(f"{URL}/token")
            except BaseException as error:
                raised.append(type(error))
                raise

        refreshing = RefreshingClient.new_decorator(fetch)
        first = session([], refreshing, base_url=BASE)
        second = session([], waiting_at(breaker, 1.0))
        async with first, second:
            breaker.on_failure()
            call = asyncio.ensure_future(end_of(first))
            await asyncio.sleep(1.0)
            for _ in range(turns):
                await asyncio.sleep(0)
            call.cancel()
            await asyncio.wait([call])

        assert raised in ([asyncio.CancelledError], [FailFastError])
        assert (1.0, None, 0) == (now(), breaker._line, timers())


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
