"""Requests that wait at circuit breakers, strategies and listeners of users' own."""

import asyncio

import pytest
from chains import now, session
from circuits import RestartingServer, breaker_of, end_of, timers, waiting_at

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerListener,
    CircuitBreakerStrategy,
    CircuitState,
    FailFastError,
)

CLOSED, OPEN, HALF_OPEN, FORCED_OPEN = CircuitState


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
