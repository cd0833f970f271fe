"""The line of those who wait at an open circuit: nothing gets lost in it."""

import asyncio
import gc
import itertools
import time
import weakref
from contextlib import suppress

import aiohttp
import pytest
from chains import URL, now, pass_on, retrying, session
from lines_run import lines_run
from restarting_server import RestartingServer

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitBreakerListener,
    CircuitBreakerRpcClient,
    CircuitBreakerStrategy,
    CircuitState,
    FailFastError,
    HedgingClient,
    RequestLog,
    ResponseTimeoutError,
    RetryingRpcClient,
    RetryRule,
    RetryStopReason,
    SessionBuilder,
    client_decorator,
    rpc,
    unwrap,
)
from aioretry_smithy._breaker.waiting_line import wait_at
from aioretry_smithy.testing import ScriptedTransport, VirtualTimeLoop

CLOSED, OPEN, HALF_OPEN, FORCED_OPEN = CircuitState


def breaker_of(window=1.0, kind=CircuitBreaker, **settings):
    """Make a circuit breaker that opens at the first failure."""
    settings = {"consecutive_failures": 1, "circuit_open_window": window} | settings
    return kind("orders", **settings)


def waiting_at(breaker, seconds=5.0, **settings):
    return CircuitBreakerClient.new_decorator(
        breaker, wait_for_ready=seconds, **settings
    )


async def end_of(client, at=0.0, **options):
    """Make a call at a time; return its end and what it brought."""
    await asyncio.sleep(at - now())
    try:
        async with client.get(URL, **options) as response:
            return round(now(), 3), response.status
    except (aiohttp.ClientError, OSError) as error:
        return round(now(), 3), type(error)


def timers():
    """Return how many timers the loop has that were not cancelled."""
    loop = asyncio.get_running_loop()
    return sum(not each.cancelled() for each in loop._scheduled)


class TestCancelled:
    """Whoever is cancelled hands on what it was given."""

    @pytest.mark.parametrize("turns", range(8))
    @pytest.mark.parametrize("others", [(), (pass_on, retrying(0.5))])
    async def test_at_each_step(self, turns, others):
        """While it waits, as it is made the trial, and as it tries."""
        server = RestartingServer(0.5)
        breaker = breaker_of(trial_request_interval=1000.0)
        chain = waiting_at(breaker, 60.0), *others
        async with session(server.transport(), *chain) as client:
            with suppress(asyncio.TimeoutError):
                async with asyncio.timeout(0.1):
                    await end_of(client)
            first = asyncio.ensure_future(end_of(client, 0.2))
            second = asyncio.ensure_future(end_of(client, 0.3))
            await asyncio.sleep(1.0 - now())
            for _ in range(turns):
                await asyncio.sleep(0)
            first.cancel()

            assert (1.0, 200) == await second
            assert CLOSED is breaker.state
        assert (None, 0) == (breaker._line, timers())

    async def test_who_waits_leaves_nothing_behind(self):
        """Neither a timer nor a place in the line."""
        breaker = breaker_of(100.0)
        async with session([503], waiting_at(breaker, 60.0)) as client:
            await end_of(client)
            tasks = [asyncio.ensure_future(end_of(client)) for _ in range(3)]
            await asyncio.sleep(0.1)
            assert 2 == timers()
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

            assert (None, 0) == (breaker._line, timers())

    async def test_the_log_says_that_it_was_cancelled(self):
        """And for how long it has waited."""
        breaker = breaker_of(100.0)
        logs = []

        @client_decorator
        async def note(delegate, ctx, request):
            logs.append(ctx.log)
            return await delegate.execute(ctx, request)

        chain = waiting_at(breaker, 60.0), retrying(0.5), note
        async with session([], *chain) as client:
            breaker.on_failure()
            task = asyncio.ensure_future(end_of(client))
            await asyncio.sleep(2.0)
            task.cancel()
            await asyncio.wait([task])

        (log,) = logs
        assert RetryStopReason.CANCELLED is log.stop_reason
        assert (2.0, "circuit_breaker") == (log.delay, log.delay_source)

    async def test_a_race_of_hedges_waits_with_all_of_them(self):
        """The loser leaves."""
        server = RestartingServer(0.5, answers_in=0.25)
        breaker = breaker_of()
        chain = waiting_at(breaker), HedgingClient.new_decorator(0.3)
        async with session(server.transport(), *chain) as client:
            breaker.on_failure()
            assert (1.25, 200) == await end_of(client)
            await asyncio.sleep(5.0)

        assert [1.0, 1.25] == server.asked
        assert (None, 0) == (breaker._line, timers())


class TestMany:
    """Ten thousand that wait."""

    async def test_they_cost_milliseconds(self):
        """To join, to be let go and to leave."""
        number = 10_000
        breaker = breaker_of()

        async def all_of(number):
            breaker.enter_state(OPEN)
            tasks = [asyncio.ensure_future(wait(breaker)) for _ in range(number)]
            await asyncio.sleep(0)
            began = time.perf_counter()
            breaker.enter_state(CLOSED)
            took = time.perf_counter() - began
            assert not any([(await each).is_trial for each in tasks])
            return took

        assert min([await all_of(number) for _ in range(3)]) < 0.2

    async def test_none_of_it_is_quadratic(self):
        """Each costs as much as any other."""
        lines = {}
        for number in 100, 1000:
            breaker = breaker_of()
            breaker.enter_state(OPEN)
            tasks = [asyncio.ensure_future(wait(breaker)) for _ in range(number)]
            await asyncio.sleep(0)

            def let_go(breaker=breaker, tasks=tasks, number=number):
                for task in tasks[: number // 2]:
                    task.cancel()
                for _ in range(number):
                    breaker._line.look()
                breaker.enter_state(CLOSED)

            lines[number] = lines_run(let_go)
            await asyncio.wait(tasks)

        assert lines[1000] <= 11 * lines[100]

    async def test_trials_that_fail_wake_only_the_next_one(self):
        """The others sleep on."""
        server = RestartingServer(1e9)
        breaker = breaker_of(1.0)
        chain = session(server.transport(), waiting_at(breaker, 10.5))
        breaker.on_failure()
        async with chain as client:
            ends = await asyncio.gather(*(end_of(client) for _ in range(100)))

        trials = [(float(at), 503) for at in range(1, 11)]
        assert [*trials, *[(10.5, FailFastError)] * 90] == ends


async def wait(breaker):
    """Wait in the line itself."""
    (permit,) = await wait_at(breaker, asyncio.get_running_loop(), 1e9)
    return permit


class Own(CircuitBreaker):
    """A user's own, which notes what is asked and told."""

    def __init__(self, *given, **settings):
        self.notes = []
        super().__init__(*given, **settings)

    def try_request(self):
        permit = super().try_request()
        self.notes.append(("asked", permit is not None))
        return permit

    def on_success(self, permit=None):
        self.notes.append("success")
        super().on_success(permit)

    def on_ignored(self, permit):
        self.notes.append("ignored")
        super().on_ignored(permit)

    def enter_state(self, state):
        self.notes.append(state.value)
        super().enter_state(state)


class Stingy(CircuitBreaker):
    """A user's own, which gives no permit while it does not want to."""

    wants = True

    def try_request(self):
        return super().try_request() if self.wants else None


class Broken(CircuitBreaker):
    """A user's own, which raises."""

    is_broken = False

    def try_request(self):
        if self.is_broken:
            raise ZeroDivisionError
        return super().try_request()


class TestSubclass:
    """A circuit breaker of a user's own."""

    async def test_its_methods_are_asked(self):
        """Once for each request that goes."""
        server = RestartingServer(0.5)
        breaker = breaker_of(kind=Own)
        async with session(server.transport(), waiting_at(breaker)) as client:
            await end_of(client)
            await asyncio.gather(end_of(client, 0.1), end_of(client, 0.2))

        yes = "asked", True
        assert [yes, "open", yes, "success", "closed", yes, "success"] == breaker.notes

    async def test_one_that_refuses_sends_them_away(self):
        """When their turn has come."""
        server = RestartingServer(0.5)
        breaker = breaker_of(kind=Stingy)
        async with session(server.transport(), waiting_at(breaker)) as client:
            await end_of(client)
            breaker.wants = False
            ends = await asyncio.gather(end_of(client, 0.1), end_of(client, 0.2))

        assert [(1.0, FailFastError)] * 2 == ends

    async def test_what_it_raises_goes_to_the_caller(self):
        """The others are asked for in their turn."""
        server = RestartingServer(0.5)
        breaker = breaker_of(kind=Broken)
        async with session(server.transport(), waiting_at(breaker)) as client:
            await end_of(client)
            waiting = asyncio.ensure_future(
                asyncio.gather(
                    end_of(client, 0.1), end_of(client, 0.2), return_exceptions=True
                )
            )
            await asyncio.sleep(0.5)
            breaker.is_broken = True
            ends = await waiting

        assert [ZeroDivisionError] * 2 == [type(each) for each in ends]

    async def test_a_clock_of_its_own_is_looked_at(self):
        """It may stand still, and go on at any speed."""
        hands = [0.0]
        server = RestartingServer(0.5)
        breaker = breaker_of(clock=lambda: hands[0])
        async with session(server.transport(), waiting_at(breaker, 60.0)) as client:
            await end_of(client)
            waiting = asyncio.ensure_future(end_of(client, 0.1))
            await asyncio.sleep(2.5)
            hands[0] = 0.9
            await asyncio.sleep(1.0)
            hands[0] = 1.0
            end, status = await waiting

        assert 200 == status
        assert 3.5 <= end <= 3.6


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


class Unsure(CircuitBreakerStrategy):
    """A user's own, which takes its time and does not know."""

    async def should_report_as_success(self, ctx, cause):
        await asyncio.sleep(0.25)
        return None if ctx.log.response_status == 204 else cause is None


async def test_a_trial_that_a_strategy_does_not_count_hands_it_on():
    """At once, after all its time."""
    breaker = breaker_of()
    decorator = waiting_at(breaker, strategy=Unsure())
    async with session([204, 204, 200, 200, 200], decorator) as client:
        breaker.on_failure()
        ends = await asyncio.gather(*(end_of(client) for _ in range(5)))

    assert [(1.25, 204), (1.5, 204), (1.75, 200), (2.0, 200), (2.0, 200)] == ends


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


class TestLoops:
    """One event loop after the other."""

    def test_those_of_a_closed_loop_hold_nobody_up(self):
        """They are nobody's any more; the next loop has a line of its own."""
        breaker = breaker_of(clock=itertools.count(0.0, 0.01).__next__)

        async def begin():
            breaker.on_failure()
            task = asyncio.ensure_future(wait(breaker))
            await asyncio.sleep(0.1)
            assert not task.done()

        async def go_on():
            task = asyncio.ensure_future(wait(breaker))
            await asyncio.sleep(0.1)
            breaker.enter_state(CLOSED)
            return await task

        for work in begin, go_on:
            loop = VirtualTimeLoop()
            try:
                loop.run_until_complete(work())
            finally:
                for task in asyncio.all_tasks(loop):
                    task._log_destroy_pending = False
                loop.close()

        assert breaker._line is None

    def test_a_circuit_that_is_closed_when_the_loop_is_serves_nobody(self):
        """By hand, at the end of a program."""
        breaker = breaker_of()
        loop = VirtualTimeLoop()

        async def begin():
            breaker.on_failure()
            task = asyncio.ensure_future(wait(breaker))
            await asyncio.sleep(0)
            return task

        task = loop.run_until_complete(begin())
        task._log_destroy_pending = False
        loop.close()
        breaker.enter_state(CLOSED)

        assert not task.done()

    async def test_a_breaker_and_its_line_are_freed_at_once(self):
        """Without the garbage collector."""
        breaker = breaker_of()
        async with session([503, 200], waiting_at(breaker)) as client:
            await end_of(client)
            await end_of(client)
        known = weakref.ref(breaker)
        gc.collect()
        gc.disable()
        try:
            del breaker, client
            await asyncio.sleep(0)
        finally:
            gc.enable()

        assert known() is None


async def test_a_session_that_is_closed_meanwhile_sends_nothing():
    """The next one is the trial."""
    breaker = breaker_of()
    transport = ScriptedTransport([503, 200])
    one = SessionBuilder().decorator(transport).decorator(waiting_at(breaker)).build()
    other = SessionBuilder().decorator(transport).decorator(waiting_at(breaker)).build()
    async with one, other:
        await end_of(one)
        lost = asyncio.ensure_future(one.get(URL))
        await asyncio.sleep(0.1)
        kept = asyncio.ensure_future(end_of(other))
        await asyncio.sleep(0.1)
        await one.close()
        ends = await asyncio.gather(lost, kept, return_exceptions=True)

    assert unwrap(other, CircuitBreakerClient) is not None
    assert (RuntimeError, (1.0, 200)) == (type(ends[0]), ends[1])
