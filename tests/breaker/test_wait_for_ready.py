"""Requests that wait at an open circuit for a trial to close it."""

import asyncio

import aiohttp
import pytest
from chains import URL, after, now, pass_on, retrying, session
from circuits import Diary, RestartingServer, breaker_of, end_of, waiting_at

from aioretry_smithy import (
    AttemptTimeoutError,
    Backoff,
    CircuitBreakerClient,
    CircuitBreakerStrategy,
    CircuitState,
    FailFastError,
    RequestLog,
    ResponseTimeoutError,
    RetryStopReason,
    SessionBuilder,
    new_response,
    request_options,
    unwrap,
)
from aioretry_smithy.testing import ScriptedTransport

CLOSED, OPEN, HALF_OPEN, FORCED_OPEN = CircuitState


async def ends_at(client, *times):
    """Make a call at each time."""
    return await asyncio.gather(*(end_of(client, at) for at in times))


class TestWait:
    """A circuit that is open lets requests wait."""

    async def test_all_go_on_at_once_when_a_trial_succeeds(self):
        """The first that waits is the trial; it finds the server back."""
        server = RestartingServer(0.5, answers_in=0.25)
        chain = session(server.transport(), waiting_at(breaker_of()))
        async with chain as client:
            ends = await ends_at(client, 0.0, 0.1, 0.2, 0.3, 1.1)

        assert [(0.0, 503), (1.25, 200), *[(1.5, 200)] * 3] == ends
        assert [0.0, 1.0, 1.25, 1.25, 1.25] == server.asked

    async def test_where_a_trial_fails_the_others_wait_on(self):
        """The next of them is the next trial, when the window has passed again."""
        server = RestartingServer(2.5)
        chain = session(server.transport(), waiting_at(breaker_of()))
        async with chain as client:
            ends = await ends_at(client, 0.0, 0.1, 0.2, 0.3, 0.4)

        assert [(0.0, 503), (1.0, 503), (2.0, 503), (3.0, 200), (3.0, 200)] == ends
        assert [0.0, 1.0, 2.0, 3.0, 3.0] == server.asked

    async def test_whoever_has_waited_long_enough_is_refused(self):
        """Each by its own time; the error is that of ever."""
        server = RestartingServer(100.0)
        diary = Diary()
        breaker = breaker_of(10.0, listeners=[diary])
        async with session(server.transport(), waiting_at(breaker, 2.0)) as client:
            await end_of(client)
            diary.entries.clear()
            ends = await ends_at(client, 1.0, 2.0)
            with pytest.raises(FailFastError) as caught:
                await client.get(URL)

        assert [(3.0, FailFastError), (4.0, FailFastError)] == ends
        assert ["rejected"] * 3 == diary.entries
        assert (6.0, 4.0) == (now(), round(caught.value.retry_in, 3))

    async def test_another_one_tries_where_a_trial_does_not_answer(self):
        """After the trial interval, as ever."""
        server = RestartingServer(0.5)
        breaker = breaker_of(trial_request_interval=0.5)
        answers = [503, after(60.0, 200), *[200] * 5]
        async with session(answers, waiting_at(breaker)) as client:
            ends = await ends_at(client, 0.0, 0.1, 0.2, 0.3)

        assert [(0.0, 503), (61.0, 200), (1.5, 200), (1.5, 200)] == ends
        assert [] == server.asked

    async def test_several_trials_follow_each_other_at_once(self):
        """Where a circuit asks for more than one."""
        server = RestartingServer(0.5, answers_in=0.25)
        breaker = breaker_of(success_threshold=3)
        async with session(server.transport(), waiting_at(breaker)) as client:
            await ends_at(client, 0.0, *[0.1] * 6)

        assert [0.0, 1.0, 1.25, 1.5, 1.75, 1.75, 1.75] == server.asked

    async def test_a_trial_that_says_nothing_hands_it_on(self):
        """A cancelled one too, at once."""
        server = RestartingServer(0.5, answers_in=10.0)
        breaker = breaker_of(trial_request_interval=60.0)
        async with session(server.transport(), waiting_at(breaker)) as client:
            await end_of(client)
            trial = asyncio.ensure_future(end_of(client))
            rest = asyncio.ensure_future(ends_at(client, 0.1, 0.2))
            await asyncio.sleep(1.5)
            server.answers_in = 0.0
            trial.cancel()

            assert [(1.5, 200), (1.5, 200)] == await rest
            assert [0.0, 1.0, 1.5, 1.5] == server.asked

    async def test_nobody_overtakes_those_who_wait(self):
        """Also who comes in the very moment of the trial."""
        order = []

        async def answer(ctx, request):
            order.append(request.url.query_string)
            await asyncio.sleep(0.0 if now() < 0.5 else 0.25)
            return 503 if now() < 0.5 else 200

        breaker = breaker_of()
        async with session([answer] * 9, waiting_at(breaker)) as client:

            async def call(at, name):
                await asyncio.sleep(at - now())
                await client.get(f"{URL}?{name}")

            loop = asyncio.get_running_loop()
            late = []
            # Before the timer of the line, which goes off at the same time.
            loop.call_at(
                1.0, lambda: late.append(asyncio.ensure_future(call(1.0, "late")))
            )
            await call(0.0, "")
            await asyncio.gather(*(call(0.1, name) for name in "abc"))
            await asyncio.gather(*late)

        assert ["", "a", "b", "c", "late"] == order

    async def test_a_window_that_grows_is_followed(self):
        """The time of the next trial is that of the circuit."""
        server = RestartingServer(5.0)
        backoff = Backoff.exponential(0.5, 4.0, 2.0)
        chain = session(server.transport(), waiting_at(breaker_of(backoff), 60.0))
        async with chain as client:
            await ends_at(client, 0.0, *[0.1] * 6)

        assert [0.0, 0.5, 1.5, 3.5, 7.5, 7.5, 7.5] == server.asked

    async def test_a_closed_circuit_lets_nobody_wait(self):
        """Nor one whose trial is due."""
        server = RestartingServer(0.5)
        breaker = breaker_of()
        async with session(server.transport(), waiting_at(breaker)) as client:
            assert (0.0, 503) == await end_of(client)
            assert (2.0, 200) == await end_of(client, 2.0)
            assert (2.0, 200) == await end_of(client)
        assert breaker._line is None

    async def test_two_clients_with_one_circuit_stand_in_one_line(self):
        """In order of arrival; one that does not wait is refused meanwhile."""
        server = RestartingServer(1.5)
        breaker = breaker_of()
        transport = server.transport()
        async with (
            session(transport, waiting_at(breaker)) as one,
            session(transport, waiting_at(breaker, 60.0)) as other,
            session(transport, CircuitBreakerClient.new_decorator(breaker)) as third,
        ):
            ends = await asyncio.gather(
                end_of(one),
                end_of(one, 0.3),
                end_of(other, 0.2),
                end_of(one, 0.1),
                end_of(third, 0.4),
            )

        assert [
            (0.0, 503),
            (2.0, 200),
            (2.0, 200),
            (1.0, 503),
            (0.4, FailFastError),
        ] == ends


class TestNoWait:
    """What is answered at once."""

    @pytest.mark.parametrize(
        ("failure", "took"),
        [
            (503, 1.0),
            (500, 1.5),
            (TimeoutError(), 0.1),
            (aiohttp.SocketTimeoutError(), 0.1),
            (ConnectionResetError(), 1.0),
        ],
    )
    async def test_after_a_slow_failure_nobody_waits(self, failure, took):
        """What waits would be load for a server that is busy."""
        server = RestartingServer(50.0, failure, took)
        async with session(server.transport(), waiting_at(breaker_of(10.0))) as client:
            await end_of(client)

            assert (took, FailFastError) == await end_of(client)

    @pytest.mark.parametrize(
        ("failure", "took"), [(503, 0.999), (500, 0.0), (ConnectionResetError(), 0.5)]
    )
    async def test_after_a_quick_failure_they_wait(self, failure, took):
        """However it shows."""
        server = RestartingServer(0.1, failure, took)
        async with session(server.transport(), waiting_at(breaker_of())) as client:
            await end_of(client)

            assert (took + 1.0, 200) == await end_of(client)

    async def test_a_slow_trial_sends_those_away_who_wait(self):
        """Then the server is there, and busy."""
        server = RestartingServer(50.0)
        async with session(server.transport(), waiting_at(breaker_of())) as client:
            await end_of(client)
            server.took = 1.5
            ends = await ends_at(client, 0.1, 0.2, 1.2, 2.6)

        assert [(2.5, 503), *[(2.5, FailFastError)] * 2, (2.6, FailFastError)] == ends

    async def test_after_a_slow_failure_a_quick_trial_lets_them_wait_again(self):
        """The last failure counts."""
        server = RestartingServer(3.5, took=1.0)
        async with session(server.transport(), waiting_at(breaker_of())) as client:
            await end_of(client)
            server.took = 0.0
            assert (1.5, FailFastError) == await end_of(client, 1.5)
            assert (2.0, 503) == await end_of(client, 2.0)

            assert [(3.0, 503), (4.0, 200)] == await ends_at(client, 2.1, 2.2)

    async def test_a_failure_of_an_earlier_state_changes_nothing(self):
        """It is not counted."""
        answers = [after(1.5, 503), 503, after(0.3, 200), *[200] * 3]
        async with session(answers, waiting_at(breaker_of(3.0))) as client:
            ends = await ends_at(client, 0.0, 0.1, 0.2, 2.0)

        assert [(1.5, 503), (0.1, 503), (3.4, 200), (3.4, 200)] == ends

    async def test_a_fallback_answers_at_once(self):
        """It is there for that."""

        async def fallback(ctx, request):
            return new_response(request, status=299)

        server = RestartingServer(50.0)
        decorator = waiting_at(breaker_of(), fallback=fallback)
        async with session(server.transport(), decorator) as client:
            await end_of(client)

            assert (0.0, 299) == await end_of(client)

    async def test_nobody_waits_where_it_is_held_open(self):
        """No trial will come."""
        breaker = breaker_of()
        breaker.enter_state(FORCED_OPEN)
        async with session([], waiting_at(breaker)) as client:
            assert (0.0, FailFastError) == await end_of(client)


class TestByHand:
    """The state is changed while some wait."""

    @pytest.mark.parametrize(
        ("state", "end"),
        [
            (CLOSED, (0.5, 200)),
            (HALF_OPEN, (0.5, 200)),
            (OPEN, (1.5, 200)),
            (FORCED_OPEN, (0.5, FailFastError)),
        ],
    )
    async def test_they_hear_of_it_at_once(self, state, end):
        """As newcomers would."""
        server = RestartingServer(0.3)
        breaker = breaker_of()
        async with session(server.transport(), waiting_at(breaker)) as client:
            await end_of(client)
            waiting = asyncio.ensure_future(ends_at(client, 0.1, 0.2))
            await asyncio.sleep(0.5)
            breaker.enter_state(state)

            assert [end, end] == await waiting

    async def test_a_wait_that_is_over_at_once_is_none(self):
        """In the same moment of the loop's clock."""
        breaker = breaker_of()
        breaker.on_failure()
        async with session([200], waiting_at(breaker)) as client:
            task = asyncio.ensure_future(client.get(URL))
            await asyncio.sleep(0)
            breaker.enter_state(CLOSED)
            log = RequestLog.of(await task)

        assert (0.0, None, None) == (now(), log.delay, log.delay_source)

    async def test_other_settings_hold_from_the_next_opening_on(self):
        """As ever."""
        server = RestartingServer(1.5)
        breaker = breaker_of()
        async with session(server.transport(), waiting_at(breaker)) as client:
            await end_of(client)
            waiting = asyncio.ensure_future(ends_at(client, 0.1, 0.2))
            await asyncio.sleep(0.5)
            breaker.update(circuit_open_window=0.75)

            assert [(1.0, 503), (1.75, 200)] == await waiting


class TestLog:
    """The wait is before the attempt begins."""

    async def test_the_wait_before_the_first_attempt_is_that_of_the_call(self):
        """The attempt begins after it, and so does its time limit."""
        breaker = breaker_of(4.0)
        breaker.on_failure()
        chain = waiting_at(breaker), retrying(0.5, attempt_timeout=2.0)
        async with session([after(3.0, 200)], *chain) as client:
            with pytest.raises(FailFastError) as caught:
                await client.get(URL)

        log = RequestLog.of(caught.value)
        first, second = log.children
        assert (4.0, "circuit_breaker") == (log.delay, log.delay_source)
        assert "first waited 4.000 s for the circuit" in log.render()
        assert (4.0, 2.0) == (first.started - log.started, first.duration)
        assert AttemptTimeoutError is type(first.response_cause)
        # The trial was slow.
        assert (0.5, "backoff", 0.0) == (
            first.delay,
            first.delay_source,
            second.duration,
        )

    async def test_the_wait_of_an_attempt_is_that_after_the_one_before(self):
        """The backoff is part of it."""
        server = RestartingServer(0.5, answers_in=0.25)
        chain = waiting_at(breaker_of()), retrying(0.25, attempt_timeout=0.5)
        async with session(server.transport(), *chain) as client:
            response = await client.get(URL)
            log = RequestLog.of(response)

        first, second = log.children
        assert (1.0, "circuit_breaker") == (first.delay, first.delay_source)
        assert (1.0, 0.25) == (second.started - log.started, second.duration)
        assert (None, None) == (log.delay, log.delay_source)
        assert "then waited 1.000 s for the circuit" in log.render()

    async def test_who_was_refused_after_the_wait_shows_it(self):
        """The attempt itself took no time."""
        chain = waiting_at(breaker_of(10.0), 2.0), pass_on, retrying(0.25)
        async with session([503], *chain) as client:
            with pytest.raises(FailFastError) as caught:
                await client.get(URL)

        log = RequestLog.of(caught.value)
        first, second = log.children
        assert (2.25, "circuit_breaker") == (first.delay, first.delay_source)
        assert (2.25, 0.0) == (second.started - log.started, second.duration)
        assert RetryStopReason.REFUSED is log.stop_reason


class TestDeadline:
    """The wait is within the deadline of the call."""

    @pytest.mark.parametrize("others", [(), (pass_on, retrying(0.25))])
    async def test_the_deadline_ends_it(self, others):
        """As it ends a wait for a rate."""
        chain = waiting_at(breaker_of(10.0)), *others
        async with session([503], *chain) as client:
            with request_options(retry=None):
                await end_of(client, timeout=aiohttp.ClientTimeout(0.1))
            end = await end_of(client, 0.5, timeout=aiohttp.ClientTimeout(2.0))

        assert (2.5, ResponseTimeoutError) == end


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
