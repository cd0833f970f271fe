"""Circuits that processes open together, by Redis."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import random
import weakref

import pytest
from chains import now
from fake_redis import FakeRedis, WaitingRedis

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerListener,
    CircuitState,
)
from aioretry_smithy.redis import SharedCircuitBreakers

CLOSED, OPEN, HALF_OPEN, FORCED_OPEN = CircuitState
LOST = ConnectionError("no route")
CHANNEL = "aioretry_smithy:circuit-breakers"


@pytest.fixture
def redis():
    return FakeRedis(latency=0.001)


class Process:
    """One process, with a circuit breaker of the name that all have."""

    def __init__(self, redis, share=0.5, name="orders", listeners=(), **settings):
        self.shared = SharedCircuitBreakers(redis, random=lambda: share)
        self.breaker = CircuitBreaker(
            name,
            minimum_request_threshold=2,
            listeners=[self.shared, *listeners],
            **settings,
        )

    async def __aenter__(self):
        await self.shared.__aenter__()
        await asyncio.sleep(0.01)
        return self

    async def __aexit__(self, *error):
        await self.shared.__aexit__(*error)

    def report(self, *outcomes):
        """Count a success or a failure for each."""
        for outcome in outcomes:
            permit = self.breaker.try_request()
            if outcome:
                self.breaker.on_success(permit)
            else:
                self.breaker.on_failure(permit)

    @property
    def state(self):
        return self.breaker.state


@contextlib.asynccontextmanager
async def processes(*all_of_them):
    async with contextlib.AsyncExitStack() as stack:
        for process in all_of_them:
            await stack.enter_async_context(process)
        yield all_of_them


@contextlib.asynccontextmanager
async def two_open(redis, *shares, **settings):
    """Run two processes; the circuit of the first has opened, and tells the other."""
    async with processes(*(Process(redis, share, **settings) for share in shares)) as (
        one,
        other,
    ):
        other.report(False)
        one.report(False, False)
        yield one, other


async def heard():
    """Wait until everybody has heard what was told."""
    await asyncio.sleep(0.01)


class TestNews:
    """A process follows the news of another one's circuit."""

    async def test_an_open_circuit_opens_the_others(self, redis):
        """Circuits of that name open, also without a request of late."""
        async with processes(
            Process(redis), Process(redis), Process(redis, name="prices")
        ) as (one, other, stranger):
            for process in other, stranger:
                process.report(False)
            one.report(False, False)
            await heard()

            assert [OPEN, OPEN, CLOSED] == [
                process.state for process in (one, other, stranger)
            ]

    async def test_two_of_a_name_in_one_process_belong_together(self, redis):
        """As of two sessions."""
        async with processes(Process(redis)) as (one,):
            second = CircuitBreaker("orders", listeners=[one.shared])
            second.on_failure(second.try_request())
            one.report(False, False)
            await heard()

            assert OPEN is second.state

    async def test_a_process_whose_requests_succeed_does_not_follow(self, redis):
        """A success before the last two seconds is no evidence."""
        async with processes(*(Process(redis) for _ in range(3))) as (one, fine, idle):
            idle.report(True)
            await asyncio.sleep(2.5)
            fine.report(True, True, False)
            one.report(False, False)
            await heard()

            assert [CLOSED, OPEN] == [fine.state, idle.state]

    async def test_a_success_closes_them_all(self, redis):
        """Any process may have tried the server."""
        async with two_open(redis, 0.1, 0.9) as (one, other):
            await asyncio.sleep(10.5)
            one.report(True)
            assert OPEN is other.state
            await heard()

            assert [CLOSED, CLOSED] == [one.state, other.state]

    async def test_a_circuit_that_is_held_open_by_hand_stays_as_it_is(self, redis):
        """And the others hear nothing of it."""
        async with processes(Process(redis), Process(redis)) as (one, other):
            other.breaker.enter_state(FORCED_OPEN)
            await heard()

            assert ([], CLOSED) == (redis.messages, one.state)
            one.report(False, False)
            one.breaker.enter_state(CLOSED)
            await heard()
            assert FORCED_OPEN is other.state

    async def test_news_go_out_once(self, redis):
        """A change because of news is no news."""
        async with processes(*(Process(redis) for _ in range(4))) as all_of_them:
            for process in all_of_them:
                process.report(False)
            all_of_them[0].report(False)
            await heard()

            (message,) = map(json.loads, redis.messages)
            assert ("orders", "open") == (message["name"], message["state"])

    @pytest.mark.parametrize(
        "message",
        ["", "7", "{}", '{"process": 1, "name": "orders", "state": "gone"}', "[" * 9],
    )
    async def test_what_is_no_news_is_ignored(self, redis, message, caplog):
        """Other programs may use the channel."""
        async with processes(Process(redis)) as (one,):
            one.report(False)
            await redis.publish(CHANNEL, message)
            await heard()

            assert (CLOSED, []) == (one.state, caplog.messages)


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

    @pytest.mark.parametrize("failed", [None, "1", -1, True, 2.0, [1]])
    async def test_what_does_not_say_how_many_have_failed_lets_nothing_grow(
        self, redis, failed
    ):
        """Such as a process with an older version."""
        async with processes(
            Process(redis, 0.2, circuit_open_window=Backoff.exponential(8.0, 60.0))
        ) as (one,):
            one.report(False)
            news = {"process": "x", "name": "orders", "state": "open", "failed": failed}
            await redis.publish(CHANNEL, json.dumps(news))
            await heard()

            assert 8.6 == round(one.breaker.retry_in, 1)

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


class TestAway:
    """A Redis that does not answer."""

    async def test_each_process_goes_on_alone(self, redis, caplog):
        """With a warning."""
        async with processes(Process(redis), Process(redis)) as (one, other):
            other.report(False)
            redis.fail(LOST)
            await asyncio.sleep(0.5)
            one.report(False, False)
            await heard()

            assert [OPEN, CLOSED] == [one.state, other.state]
            assert 9.9 < one.breaker.retry_in <= 10.0
        warning = (
            "SharedCircuitBreakers(channel='aioretry_smithy:circuit-breakers'): no "
            "answer from the storage, so circuits open in each process alone: "
            "ConnectionError('no route')"
        )
        assert [warning] * 2 == caplog.messages

    async def test_news_arrive_once_it_is_back(self, redis):
        """A second later at most."""
        async with processes(Process(redis), Process(redis)) as (one, other):
            other.report(False)
            redis.fail(LOST)
            await asyncio.sleep(5.0)
            redis.fail(None)
            await asyncio.sleep(1.1)
            one.report(False, False)
            await heard()

            assert OPEN is other.state

    async def test_it_is_away_where_a_process_begins(self, redis):
        """Nothing waits for it there either."""
        redis.fail(LOST)
        async with processes(Process(redis), Process(redis)) as (one, other):
            assert 0.1 > now()
            redis.fail(None)
            await asyncio.sleep(1.5)
            other.report(False)
            one.report(False, False)
            await heard()

            assert OPEN is other.state

    @pytest.mark.parametrize("pong", [{"data": b""}, None], ids=["heard", "ignored"])
    async def test_a_connection_that_is_quiet_is_tried(self, redis, caplog, pong):
        """One that answers is kept; one that does not is made anew."""
        redis.pong = pong
        async with processes(Process(redis)) as (one,):
            await asyncio.sleep(300.0)
            assert [] == caplog.messages
            redis.failure = LOST
            await asyncio.sleep(59.0)
            redis.failure = None
            await asyncio.sleep(5.0)

            (message,) = caplog.messages
            assert "ConnectionError('no answer to a ping')" in message
            assert 1 == len(redis.subscribers)
            assert CLOSED is one.state


class TestLife:
    """When it begins and ends."""

    async def test_nothing_is_told_or_heard_outside_of_its_block(self, redis):
        """Before it and after it."""
        one, other = Process(redis), Process(redis)
        one.report(False, False)
        async with processes(other):
            other.report(False)
            one.breaker.enter_state(CLOSED)
            await heard()
            other.breaker.enter_state(FORCED_OPEN)
            other.breaker.enter_state(OPEN)
        # Its own last news was on its way when its block ended.
        other.breaker.enter_state(CLOSED)
        await heard()

        assert ([], set()) == (redis.messages, redis.subscribers)

    async def test_it_is_used_once_at_a_time(self, redis):
        """And again afterwards."""
        async with Process(redis) as one:
            with pytest.raises(RuntimeError, match="is in use"):
                await one.shared.__aenter__()
        async with one:
            assert 1 == len(redis.subscribers)
        await one.shared.__aexit__()

    async def test_circuit_breakers_are_not_kept_alive(self, redis):
        """Nor those of a host that is no longer used."""
        async with Process(redis) as one:
            second = CircuitBreaker("orders", listeners=[one.shared])
            second.on_failure(second.try_request())
            dropped = weakref.ref(second)
            del second
            gc.collect()

            assert None is dropped()

    async def test_other_listeners_hear_of_it_as_ever(self, redis):
        """Once of each change."""
        states = []

        class Bell(CircuitBreakerListener):
            def on_state_changed(self, circuit_breaker, state):
                states.append(state)

        async with processes(Process(redis, 0.1), Process(redis, 0.9)) as (one, _):
            pass
        other = Process(redis, 0.9, listeners=[Bell()])
        async with processes(one, other):
            other.report(False)
            one.report(False, False)
            await asyncio.sleep(10.5)
            one.report(True)
            await heard()

        assert [OPEN, CLOSED] == states

    async def test_a_channel_that_is_no_text_is_one_too(self, redis):
        """Redis gets a name that UTF-8 can encode."""
        async with SharedCircuitBreakers(redis, channel="\udcff") as shared:
            CircuitBreaker(listeners=[shared]).enter_state(OPEN)
            await heard()

        assert ["\\udcff"] == redis.channels

    @pytest.mark.parametrize(
        ("argument", "settings"),
        [
            ("redis: <class 'int'> ", {"redis": 1}),
            ("redis: <class 'type'> ", {"redis": FakeRedis}),
            ("redis: <class 'fake_redis.WaitingRedis'> ", {"redis": WaitingRedis()}),
            ("channel: '' ", {"channel": ""}),
            ("channel: 1 ", {"channel": 1}),
            ("random: 1 ", {"random": 1}),
        ],
    )
    def test_bad_arguments_are_refused(self, redis, argument, settings):
        """Where they are given."""
        with pytest.raises(ValueError) as caught:
            SharedCircuitBreakers(**{"redis": redis} | settings)

        assert str(caught.value).startswith(argument)
