"""The line of those who wait at an open circuit: nothing gets lost in it."""

import asyncio
import gc
import itertools
import time
import weakref
from contextlib import suppress

import pytest
from chains import URL, now, pass_on, retrying, session
from circuits import RestartingServer, breaker_of, end_of, timers, waiting_at
from until import lines_run

from aioretry_smithy import (
    CircuitBreakerClient,
    CircuitState,
    FailFastError,
    HedgingClient,
    RetryStopReason,
    SessionBuilder,
    client_decorator,
    unwrap,
)
from aioretry_smithy._breaker.wait_for_ready import wait_at
from aioretry_smithy.testing import ScriptedTransport, VirtualTimeLoop

CLOSED, OPEN, HALF_OPEN, FORCED_OPEN = CircuitState


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

    @pytest.mark.slow
    async def test_they_cost_milliseconds(self):
        """To join, to be let go and to leave."""
        number = 10_000
        breaker = breaker_of()

        async def all_of(number):
            breaker.enter_state(OPEN)
            tasks = [asyncio.ensure_future(wait(breaker)) for _ in range(number)]
            await asyncio.sleep(0)
            began = time.thread_time()
            breaker.enter_state(CLOSED)
            took = time.thread_time() - began
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
