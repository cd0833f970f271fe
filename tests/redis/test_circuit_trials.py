"""Trials of circuits that processes open together, and who waits for them."""

import asyncio
import random

import pytest
from chains import now, session
from circuits import RestartingServer, end_of, waiting_at
from fake_redis import FakeRedis, Process, heard, processes, two_open

from aioretry_smithy import Backoff, CircuitState, FailFastError

CLOSED, OPEN, HALF_OPEN, FORCED_OPEN = CircuitState


CHANNEL = "aioretry_smithy:circuit-breakers"


@pytest.fixture
def redis():
    return FakeRedis(latency=0.001)


class TestTrials:
    """One process tries the server, the others wait."""

    async def test_one_tries_and_the_others_wait_for_its_answer(self, redis):
        """The first whose time comes tries; then all wait again."""
        async with two_open(redis, 0.1, 0.2) as (one, other):
            await heard()
            assert (10.3, 10.6) == (
                round(one.breaker.retry_in, 1),
                round(other.breaker.retry_in, 1),
            )

            await asyncio.sleep(10.5)
            permit = one.breaker.try_request()
            await heard()
            assert [HALF_OPEN, OPEN] == [one.state, other.state]
            assert 10.6 == round(other.breaker.retry_in, 1)

            await asyncio.sleep(5.0)
            one.breaker.on_failure(permit)
            await heard()
            assert (10.3, 10.6) == (
                round(one.breaker.retry_in, 1),
                round(other.breaker.retry_in, 1),
            )

    async def test_another_one_tries_where_the_first_does_not_answer(self, redis):
        """As after a crash; its news count then."""
        async with two_open(redis, 0.1, 0.2) as (one, other):
            await asyncio.sleep(10.5)
            one.breaker.try_request()
            await asyncio.sleep(11.0)
            other.report(True)
            await heard()

            assert [CLOSED, CLOSED] == [one.state, other.state]

    async def test_whoever_opens_late_joins_the_round(self, redis):
        """The others do not wait longer because of it."""
        async with processes(
            Process(redis, 0.1), Process(redis, 0.2), Process(redis, 0.3)
        ) as (one, other, late):
            other.report(False)
            late.report(True, True)
            one.report(False, False)
            await asyncio.sleep(5.0)
            assert CLOSED is late.state
            late.report(False, False, False)
            assert 10.0 == late.breaker.retry_in
            await heard()

            assert 5.6 == round(other.breaker.retry_in, 1)
            assert OPEN is late.state

    async def test_two_that_open_at_once_are_of_one_round(self, redis):
        """The first one begins the round; the news of the second change nothing."""
        async with processes(Process(redis, 0.1), Process(redis, 0.2)) as (one, other):
            one.report(False, False)
            other.report(False, False)
            await heard()

            assert 2 == len(redis.messages)
            assert 10.6 == round(other.breaker.retry_in, 1)

    async def test_the_open_window_grows_in_all_of_them(self, redis):
        """The one that tries tells how many trials have failed; a success ends it."""
        async with two_open(
            redis, 0.1, 0.2, circuit_open_window=Backoff.exponential(8.0, 60.0)
        ) as (one, other):
            windows = []
            for _ in range(3):
                await heard()
                windows.append(
                    [round(each.breaker.retry_in, 1) for each in (one, other)]
                )
                await asyncio.sleep(one.breaker.retry_in)
                one.report(False)
            await asyncio.sleep(one.breaker.retry_in + 1.0)
            one.report(True)
            await heard()
            one.report(False, False)
            await heard()

            assert [[8.3, 8.6], [16.3, 16.6], [32.3, 32.6]] == windows
            assert 8.6 == round(other.breaker.retry_in, 1)

    async def test_two_that_fail_at_once_let_it_grow_once(self, redis):
        """Each has tried the server in the same round."""
        async with two_open(
            redis, 0.1, 0.1, circuit_open_window=Backoff.exponential(8.0, 60.0)
        ) as (one, other):
            await asyncio.sleep(8.5)
            permits = [each.breaker.try_request() for each in (one, other)]
            await heard()
            for each, permit in zip((one, other), permits, strict=True):
                each.breaker.on_failure(permit)
            await heard()

            assert [16.3, 16.3] == [
                round(each.breaker.retry_in, 1) for each in (one, other)
            ]

    async def test_who_opens_because_of_others_begins_where_they_are(self, redis):
        """The server has been down for as long as they have known."""
        async with two_open(
            redis, 0.1, 0.2, circuit_open_window=Backoff.exponential(8.0, 60.0)
        ) as (one, _):
            await asyncio.sleep(8.5)
            late = Process(
                redis, 0.3, circuit_open_window=Backoff.exponential(8.0, 60.0)
            )
            async with late:
                late.report(False)
                one.report(False)
                await heard()

                assert 16.9 == round(late.breaker.retry_in, 1)

    async def test_several_trials_are_made_by_one_process(self, redis):
        """The others wait for the last of them, and close with it."""
        async with two_open(redis, 0.1, 0.9, success_threshold=3) as (one, other):
            await asyncio.sleep(10.5)
            states = []
            for _ in range(3):
                one.report(True)
                await heard()
                states.append([one.state, other.state])

            assert [[HALF_OPEN, OPEN], [HALF_OPEN, OPEN], [CLOSED, CLOSED]] == states

    @pytest.mark.parametrize("order", [1, -1])
    async def test_a_trial_goes_on_whatever_the_others_say(self, redis, order):
        """Its answer decides, though another one, begun before or after it, failed."""
        async with two_open(redis, 0.1, 0.1) as (one, other):
            await asyncio.sleep(10.5)
            permits = {
                each: each.breaker.try_request() for each in (one, other)[::order]
            }
            await heard()
            assert [HALF_OPEN, HALF_OPEN] == [one.state, other.state]
            other.breaker.on_failure(permits[other])
            await heard()
            assert [HALF_OPEN, OPEN] == [one.state, other.state]
            one.breaker.on_success(permits[one])
            await heard()

            assert [CLOSED, CLOSED] == [one.state, other.state]

    @pytest.mark.slow
    @pytest.mark.parametrize("shares_news", [True, False])
    async def test_eight_processes_try_as_often_as_one(self, redis, shares_news):
        """Through an outage of two minutes; a second after it, all go on."""
        dice = random.Random(7)
        tried = []
        down_from, down_until = 20.0, 140.0

        async def call_on_and_on(process):
            while True:
                await asyncio.sleep(0.1 * (0.5 + dice.random()))
                permit = process.breaker.try_request()
                if permit is None:
                    continue
                await asyncio.sleep(0.02)
                if down_from < now() < down_until:
                    tried.append(now())
                    process.breaker.on_failure(permit)
                else:
                    process.breaker.on_success(permit)

        def fleet():
            for _ in range(8):
                process = Process(redis if shares_news else FakeRedis())
                process.shared._random = dice.random
                yield process

        async with processes(*fleet()) as all_of_them:
            tasks = [asyncio.create_task(call_on_and_on(each)) for each in all_of_them]
            await asyncio.sleep(155.0)
            states = {process.state for process in all_of_them}
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        trials = len([at for at in tried if 45.0 < at])

        assert {CLOSED} == states
        assert trials <= 10 if shares_news else trials >= 56


CLOSED, OPEN, HALF_OPEN, _ = CircuitState


ROW = {
    "consecutive_failures": 2,
    "circuit_open_window": 1.0,
    "trial_request_interval": 1.0,
}


async def test_one_process_tries_for_those_who_wait_in_all(redis):
    """The others go on when they hear of it."""
    server = RestartingServer(1.0, answers_in=0.25)
    async with processes(Process(redis, 0.9, **ROW), Process(redis, 0.1, **ROW)) as (
        one,
        other,
    ):
        other.report(False)
        one.report(False, False)
        await heard()
        assert [OPEN, OPEN] == [one.state, other.state]
        transport = server.transport()
        async with (
            session(transport, waiting_at(one.breaker)) as first,
            session(transport, waiting_at(other.breaker)) as second,
        ):
            ends = await asyncio.gather(
                *(end_of(each, 0.2) for each in (first, first, second, second))
            )

    assert [200] * 4 == [status for _, status in ends]
    assert 4 == len(server.asked)
    assert [1.1] == [round(at, 1) for at in server.asked[:1]]
    assert [1.4, 1.6, 1.6, 1.6] == sorted(round(at, 1) for at, _ in ends)


@pytest.mark.parametrize("slow", [False, True])
async def test_whether_the_server_was_slow_is_told(redis, slow):
    """Whoever follows lets nobody wait then."""
    server = RestartingServer(1.5 if slow else 0.5, took=1.25 if slow else 0.0)
    async with processes(Process(redis, 0.9, **ROW), Process(redis, 0.1, **ROW)) as (
        one,
        other,
    ):
        other.report(False)
        async with (
            session(server.transport(), waiting_at(one.breaker)) as first,
            session(server.transport(), waiting_at(other.breaker)) as second,
        ):
            await asyncio.gather(end_of(first), end_of(first))
            await heard()
            assert [OPEN, OPEN] == [one.state, other.state]
            end, status = await end_of(second)

    expected = (1.3, FailFastError) if slow else (1.1, 200)
    assert expected == (round(end, 1), status)
