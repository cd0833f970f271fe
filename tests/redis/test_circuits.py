"""Circuits that processes open together, by Redis."""

import asyncio
import gc
import json
import weakref

import pytest
from chains import now
from fake_redis import FakeRedis, Process, WaitingRedis, heard, processes, two_open

from aioretry_smithy import CircuitBreaker, CircuitBreakerListener, CircuitState
from aioretry_smithy.redis import SharedCircuitBreakers
from aioretry_smithy.testing import VirtualTimeLoop

CLOSED, OPEN, HALF_OPEN, FORCED_OPEN = CircuitState
LOST = ConnectionError("no route")
CHANNEL = "aioretry_smithy:circuit-breakers"


def news(failed):
    """Return the message of another process whose circuit has opened."""
    said = {"process": "x", "name": "orders", "state": "open", "failed": failed}
    return json.dumps({**said, "slow": False, "opening": "1"})


@pytest.fixture
def redis():
    return FakeRedis(latency=0.001)


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

    @pytest.mark.parametrize(
        ("outcomes", "state"),
        [((False,), OPEN), ((True, False, False), OPEN), ((True, True, False), CLOSED)],
    )
    async def test_a_process_that_opens_at_a_row_follows_as_the_others(
        self, redis, outcomes, state
    ):
        """Though no share of failures could open its circuit."""
        row = {"failure_rate_threshold": 1.0, "consecutive_failures": 3}
        async with processes(*(Process(redis, **row) for _ in range(2))) as (
            one,
            other,
        ):
            other.report(*outcomes)
            one.report(False, False, False)
            await heard()

            assert [OPEN, state] == [one.state, other.state]

    async def test_one_that_only_a_hand_opens_does_not_follow_failures(self, redis):
        """As it does not open by itself."""
        async with processes(
            Process(redis), Process(redis, failure_rate_threshold=1.0)
        ) as (one, other):
            other.report(False)
            one.report(False, False)
            await heard()

            assert [OPEN, CLOSED] == [one.state, other.state]

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
        [
            *("", "7", "{}", "[" * 9),
            pytest.param("[" * 200_000, id="deep"),
            '{"process": "x", "name": "orders", "state": "gone"}',
            '{"process": "x", "name": "orders", "state": "open"}',
            *(news(failed) for failed in ("1", -1, None, 2.0)),
        ],
    )
    async def test_what_is_no_news_is_ignored(self, redis, message, caplog):
        """Other programs may use the channel."""
        async with processes(Process(redis)) as (one,):
            one.report(False)
            await redis.publish(CHANNEL, message)
            await heard()

            assert (CLOSED, []) == (one.state, caplog.messages)


class TestHeard:
    """The news of an open circuit are told until all can have heard them."""

    async def test_a_connection_that_was_closed_is_made_anew_at_once(
        self, redis, caplog
    ):
        """Redis is not away; what is told in the next moment arrives."""
        async with processes(Process(redis), Process(redis)) as (one, other):
            other.report(False)
            await asyncio.sleep(5.0)
            redis.cut()
            await heard()
            one.report(False, False)
            await heard()

            assert (OPEN, []) == (other.state, caplog.messages)

    async def test_news_that_went_out_during_a_restart_are_told_again(self, redis):
        """The others hear them when they have subscribed again."""
        async with processes(Process(redis), Process(redis)) as (one, other):
            other.report(False)
            await asyncio.sleep(5.0)
            redis.fail(LOST)
            await heard()
            one.report(False, False)
            await asyncio.sleep(0.3)
            redis.fail(None)
            assert CLOSED is other.state
            await asyncio.sleep(2.5)

            assert OPEN is other.state

    async def test_news_that_only_their_process_could_hear_are_told_again(self, redis):
        """It may have subscribed before the others."""
        async with processes(Process(redis), Process(redis)) as (one, other):
            other.report(False)
            await asyncio.sleep(5.0)
            redis.cut()
            await heard()
            subscribers = set(redis.subscribers)
            redis.subscribers.clear()
            one.report(False, False)
            await heard()
            redis.subscribers.update(subscribers)
            assert CLOSED is other.state
            await asyncio.sleep(1.1)

            assert OPEN is other.state

    async def test_news_are_told_again_where_clients_reconnect_by_themselves(
        self, redis
    ):
        """They raise nothing; the server's word for a subscription says so."""
        async with Process(redis) as one:
            await heard()
            its_own = set(redis.subscribers)
            async with Process(redis) as other:
                other.report(False)
                await asyncio.sleep(5.0)
                redis.reconnect()
                await heard()
                everybody = set(redis.subscribers)
                # The other one has not subscribed again yet.
                redis.subscribers.intersection_update(its_own)
                one.report(False, False)
                await heard()
                redis.subscribers.update(everybody)
                assert CLOSED is other.state
                await asyncio.sleep(1.1)

                assert OPEN is other.state

    async def test_news_are_told_no_more_when_they_were_heard(self, redis):
        """Nor when the circuit is closed, or may be tried."""
        async with processes(Process(redis), Process(redis)) as (one, other):
            await asyncio.sleep(5.0)
            one.report(False, False)
            await asyncio.sleep(5.0)
            assert 1 == len(redis.messages)

            one.breaker.enter_state(CLOSED)
            other.breaker.enter_state(CLOSED)
            redis.cut()
            await heard()
            one.report(False, False)
            one.breaker.enter_state(CLOSED)
            await heard()
            redis.messages.clear()
            await asyncio.sleep(5.0)
            assert [] == redis.messages

    async def test_two_circuits_that_open_are_both_told_again(self, redis):
        """In one go."""
        async with processes(Process(redis)) as (one,):
            second = CircuitBreaker("prices", listeners=[one.shared])
            one.breaker.enter_state(OPEN)
            second.enter_state(OPEN)
            await heard()
            redis.messages.clear()
            await asyncio.sleep(1.0)
            names = [json.loads(message)["name"] for message in redis.messages]

            assert ["orders", "prices"] == sorted(names)

    async def test_news_of_a_circuit_that_may_be_tried_are_old(self, redis):
        """Redis was away for longer than the window."""
        async with processes(Process(redis, circuit_open_window=3.0)) as (one,):
            redis.fail(LOST)
            await heard()
            one.report(False, False)
            await asyncio.sleep(4.5)
            redis.fail(None)
            await asyncio.sleep(5.0)

            assert [] == redis.messages

    async def test_who_did_not_follow_does_not_follow_what_is_told_again(self, redis):
        """What is told again is nothing new."""
        async with processes(Process(redis), Process(redis)) as (one, fine):
            fine.report(True, True)
            one.report(False, False)
            await asyncio.sleep(5.0)

            assert len(redis.messages) > 1
            assert CLOSED is fine.state

    async def test_a_connection_that_is_closed_again_and_again_is_no_connection(
        self, redis, caplog
    ):
        """There is a second between two of them."""
        async with processes(Process(redis)):
            await asyncio.sleep(5.0)
            redis.questions = 0
            for _ in range(10):
                redis.cut()
                await asyncio.sleep(0.1)

            assert redis.questions <= 3
        assert 1 == len(caplog.messages)


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
            # Another connection was tried first.
            assert "ConnectionError('no route')" in message
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

    # The coroutines of such a loop end when they are collected, and say so.
    @pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
    def test_a_loop_that_was_closed_is_in_its_block_no_more(self, redis):
        """Another loop may begin one, and news are sent there."""
        shared = SharedCircuitBreakers(redis)
        breaker = CircuitBreaker("orders", listeners=[shared])

        async def begin():
            await shared.__aenter__()
            await asyncio.sleep(5.0)
            breaker.enter_state(OPEN)

        loop = VirtualTimeLoop()
        loop.run_until_complete(begin())
        loop.close()
        redis.messages.clear()
        redis.subscribers.clear()

        async def main():
            breaker.enter_state(CLOSED)
            await heard()
            outside = [*redis.messages]
            async with shared:
                await heard()
                breaker.enter_state(OPEN)
                await heard()
            return outside, len(redis.messages)

        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            assert ([], 1) == runner.run(main())
        gc.collect()

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
