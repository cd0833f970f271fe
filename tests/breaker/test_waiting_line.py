"""The line of those who wait at an open circuit: nothing gets lost in it."""

import asyncio
import gc
import itertools
import time
import weakref
from contextlib import suppress

import pytest
from chains import now, retrying, session
from circuits import RestartingServer, breaker_of, end_of, timers, waiting_at
from until import lines_run

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerListener,
    CircuitState,
    FailFastError,
    HedgingClient,
    RetryStopReason,
    client_decorator,
)
from aioretry_smithy._breaker.wait_for_ready import wait_at
from aioretry_smithy.testing import VirtualTimeLoop

CLOSED, OPEN, HALF_OPEN, FORCED_OPEN = CircuitState


class TestCancelled:
    """Whoever is cancelled hands on what it was given."""

    @pytest.mark.parametrize("turns", range(8))
    async def test_at_each_step(self, turns):
        """While it waits, as it is made the trial, and as it tries."""
        server = RestartingServer(0.5)
        breaker = breaker_of(trial_request_interval=1000.0)
        chain = session(server.transport(), waiting_at(breaker, 60.0))
        async with chain as client:
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


async def test_who_joins_as_the_circuit_has_closed_goes_at_once():
    """It was asked whether to wait before that."""
    breaker = breaker_of()

    assert not (await wait(breaker)).is_trial
    assert now() < 0.001


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

    async def test_one_that_is_cancelled_as_it_is_refused_gives_nothing_back(self):
        """It was given nothing."""
        breaker = breaker_of(kind=Stingy)
        async with session([], waiting_at(breaker)) as client:
            breaker.on_failure()
            breaker.wants = False
            task = asyncio.ensure_future(end_of(client))
            await asyncio.sleep(0.5)
            breaker.enter_state(HALF_OPEN)
            task.cancel()
            await asyncio.wait([task])

        assert (True, HALF_OPEN, 0.0) == (
            task.cancelled(),
            breaker.state,
            breaker.retry_in,
        )

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

    async def test_one_that_lags_is_not_asked_again_and_again(self):
        """By less than the event loop can wait for."""
        lags = iter(range(100))
        await asyncio.sleep(1e6)
        breaker = breaker_of(clock=lambda: now() - 1e6 - next(lags, 0) * 1e-12)
        breaker.on_failure()

        assert (await wait(breaker)).is_trial
        assert next(lags) < 10


class Ended(BaseException):
    """Raised where a program is to end, and does not."""


class TestRaisedMeanwhile:
    """What is raised as a circuit is looked at is no end of the line."""

    async def test_those_who_wait_go_on_though_a_trial_ended_a_program(self, unraised):
        """A trial is lost, and another one follows after the trial interval."""

        class Ending(CircuitBreakerListener):
            def on_state_changed(self, circuit_breaker, state):
                if state is HALF_OPEN and circuit_breaker.ends:
                    circuit_breaker.ends = False
                    raise Ended

        server = RestartingServer(0.5)
        breaker = breaker_of(listeners=[Ending()])
        breaker.ends = True
        async with session(server.transport(), waiting_at(breaker, 60.0)) as client:
            await end_of(client)
            calls = (end_of(client, at) for at in (0.1, 0.2, 0.3, 2.0))
            ends = await asyncio.gather(*calls, return_exceptions=True)

        assert Ended is type(ends[0])
        assert [(4.0, 200)] * 3 == ends[1:]
        assert [Ended] == unraised

    async def test_they_are_let_go_though_one_could_not_be(self, unraised):
        """A moment later, where the circuit is closed by then."""

        class Ending(CircuitBreaker):
            def try_request(self):
                permit = super().try_request()
                if self.state is CLOSED and self.ends:
                    self.ends = False
                    raise Ended
                return permit

        server = RestartingServer(100.0)
        breaker = breaker_of(60.0, kind=Ending)
        breaker.ends = False
        async with session(server.transport(), waiting_at(breaker, 60.0)) as client:
            await end_of(client)
            waiting = [asyncio.ensure_future(end_of(client, 0.1)) for _ in range(3)]
            await asyncio.sleep(0.5)
            server.back_at = 0.5
            breaker.ends = True
            with pytest.raises(Ended):
                breaker.enter_state(CLOSED)
            ends = await asyncio.gather(*waiting, return_exceptions=True)

        assert Ended is type(ends[0])
        assert [(0.6, 200)] * 2 == ends[1:]

    async def test_nobody_is_looked_for_where_the_last_one_went(self, unraised):
        """No timer is left."""

        class Ending(CircuitBreaker):
            def try_request(self):
                raise Ended

        breaker = breaker_of(kind=Ending)
        breaker.on_failure()
        async with session([], waiting_at(breaker, 60.0)) as client:
            with pytest.raises(Ended):
                await end_of(client)
            await asyncio.sleep(0)

        assert [Ended] == unraised
        assert (None, 0) == (breaker._line, timers())

    async def test_a_clock_may_fail_once(self, unraised):
        """It is looked at again."""
        reads = []

        def clock():
            reads.append(now())
            if now() == 1.0 and reads.count(1.0) == 1:
                raise ZeroDivisionError
            return now()

        server = RestartingServer(0.5)
        breaker = breaker_of(clock=clock)
        async with session(server.transport(), waiting_at(breaker, 60.0)) as client:
            await end_of(client)
            ends = await asyncio.gather(*(end_of(client, 0.1) for _ in range(2)))

        assert [(1.1, 200)] * 2 == ends
        assert [ZeroDivisionError] == unraised


@pytest.fixture
async def unraised():
    """Return the classes of what callbacks of the loop have raised."""
    classes = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(
        lambda _, about: classes.append(type(about["exception"]))
    )
    yield classes
    loop.set_exception_handler(None)
