"""Requests that wait for an endpoint.

Of the cases of endpoints.md (f): 107 to 111, 118 to 121, 125.
"""

import asyncio
import itertools
import random

import pytest
from balanced import IN_ORDER, Fleet, at, call, url_of
from chains import SAFELY, impatient, in_virtual_time, now, retrying

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerClient,
    DynamicEndpointGroup,
    Endpoint,
    EndpointGroup,
    EndpointSelectionTimeoutError,
    HedgingClient,
    ResponseTimeoutError,
    RetryStrategy,
    client_decorator,
)


def empty(**settings):
    """Make a group without endpoints, as yet."""
    return DynamicEndpointGroup(selection=IN_ORDER, name="orders", **settings)


async def fill_at(group, moment, names="ab"):
    """Set endpoints at a moment."""
    await at(moment)
    group.set_endpoints(map(url_of, names))


class Names:
    """Answers what a name stands for, in turn; the last answer stays."""

    def __init__(self, *answers, takes=0.0):
        self.answers = [*answers]
        self.takes = takes
        self.times = []

    async def __call__(self, host, port):
        self.times.append(now())
        if self.takes:
            await asyncio.sleep(self.takes)
        answer = self.answers.pop(0) if self.answers[1:] else self.answers[0]
        if isinstance(answer, BaseException):
            raise answer
        return [(address, 5.0) for address in answer]


def named(*answers, takes=0.0, **settings):
    """Make a group of the addresses of a name, and what it asks."""
    names = Names(*answers, takes=takes)
    settings.setdefault("selection", IN_ORDER)
    return EndpointGroup.dns("http://a.example", resolver=names, **settings), names


class TestWait:
    """A wait for the first endpoint."""

    async def test_those_that_wait_go_in_order(self):
        """Case 120: the first that came is the first to go."""
        group, order = empty(), []

        @client_decorator
        async def note(delegate, ctx, request):
            order.append(request.url.path)
            return await delegate.execute(ctx, request)

        async with Fleet().session(group, note, retrying(SAFELY)) as client:
            calls = [
                asyncio.create_task(call(client, f"/{number}")) for number in range(9)
            ]
            await fill_at(group, 1.0)
            await asyncio.gather(*calls)

        assert [f"/{number}" for number in range(9)] == order

    async def test_attempt_timeout_begins_after_it(self):
        """The wait comes before the attempt."""
        group = empty()
        client = Fleet().session(group, retrying(SAFELY, attempt_timeout=1.0))
        async with client:
            filling = asyncio.create_task(fill_at(group, 2.5))
            status, log = await call(client)
            await filling

        assert (200, 1) == (status, log.total_attempts)
        assert 2.5 == log.children[0].started

    async def test_all_weights_of_zero_are_waited_for_too(self):
        """Another list may come; the error says what there is."""
        group = empty()
        group.set_endpoints([Endpoint(url_of("a"), weight=0)])
        async with Fleet().session(group) as client:
            error, _ = await call(client)

        assert {"a.example": "weight 0"} == error.endpoints

    @pytest.mark.parametrize("strategy", [SAFELY, RetryStrategy.on_unprocessed()])
    @pytest.mark.parametrize("method", ["GET", "POST"])
    async def test_every_strategy_may_retry_it(self, strategy, method):
        """Case 110: it was not sent."""
        group = empty()
        async with Fleet().session(group, retrying(strategy)) as client:
            filling = asyncio.create_task(fill_at(group, 4.0))
            status, log = await call(client, method=method)
            await filling

        assert (200, 2) == (status, log.total_attempts)
        assert [None, "a.example"] == [each.endpoint for each in log.children]

    async def test_counts_for_no_breaker_and_no_hedge(self):
        """Case 110: of ours, on this side."""
        breaker = CircuitBreaker("all", minimum_request_threshold=1)
        around = CircuitBreakerClient.new_decorator(breaker)
        async with Fleet().session(empty(), around) as client:
            await call(client)

        assert "closed" == str(breaker.state)

    async def test_deadline_ends_it(self):
        """Case 121: as a ResponseTimeoutError, which no retry follows."""
        for decorators in ((), (retrying(SAFELY),)):
            async with Fleet().session(empty(), *decorators, timeout=1.0) as client:
                error, log = await call(client)

            assert ResponseTimeoutError is type(error)
            assert (1.0, False) == (log.duration, log.sent)

    async def test_deadline_ends_it_with_an_attempt_before(self):
        """Case 121: the list has become empty since."""
        group = empty()
        group.set_endpoints([url_of("a")])
        fleet = Fleet(a=503)

        async with fleet.session(group, retrying(0.5), timeout=2.0) as client:
            task = asyncio.create_task(call(client))
            await asyncio.sleep(0.2)
            group.set_endpoints([])
            error, log = await task

        assert ResponseTimeoutError is type(error)
        assert (2.0, ["a"]) == (log.duration, fleet.asked)

    async def test_wait_of_a_retry_is_shown_after_the_attempt_before(self):
        """Case 120: beside its backoff."""
        group = empty()
        group.set_endpoints([url_of("a")])
        async with Fleet(a=503).session(group, retrying(0.5)) as client:
            task = asyncio.create_task(call(client))
            await asyncio.sleep(0.2)
            group.set_endpoints([])
            filling = asyncio.create_task(fill_at(group, 2.0, "b"))
            status, log = await task
            await filling

        first, second = log.children
        assert (200, 2.0, "endpoint") == (status, first.delay, first.delay_source)
        assert (2.0, 0.0) == (second.started, second.duration)

    async def test_cancelled_wait_leaves_nothing(self):
        """At this await."""
        group = empty()
        loop = asyncio.get_running_loop()
        async with Fleet().session(group, retrying(SAFELY)) as client:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(1.0):
                    await client.get("/orders")
            left = [each for each in loop._scheduled if not each.cancelled()]
            group.set_endpoints([url_of("a")])
            status, _ = await call(client)

        assert ([], 200) == (left, status)

    async def test_session_that_is_closed_meanwhile(self):
        """Case 125: RuntimeError, as aiohttp has it."""
        group = empty()
        client = Fleet().session(group)
        task = asyncio.create_task(client.get("/orders"))
        await asyncio.sleep(1.0)
        await client.close()
        with pytest.raises(RuntimeError, match="Session is closed"):
            await task

    async def test_hedges_wait_too(self):
        """The first one's wait is that of the attempt."""
        group = empty()
        hedging = HedgingClient.new_decorator(0.5, max_hedges=1)
        fleet = Fleet()
        async with fleet.session(group, hedging) as client:
            filling = asyncio.create_task(fill_at(group, 1.0))
            status, _ = await call(client)
            await filling

        assert 200 == status
        assert {0} == {each.in_flight for each in group.states.values()}

    async def test_waits_are_cancelled_at_random(self):
        """In a group that fills and empties: nothing is left."""
        group = empty()
        chance = random.Random(3)

        async def change():
            while True:
                names = "".join(each for each in "abc" if chance.random() < 0.4)
                group.set_endpoints(map(url_of, names))
                await asyncio.sleep(0.3)

        changing = asyncio.create_task(change())
        async with Fleet().session(group, retrying(SAFELY)) as client:
            await impatient(
                chance,
                (call(client) for _ in range(300)),
                pauses=(0.0, 0.01, 0.2),
                cancelled=0.3,
            )
        changing.cancel()
        group.set_endpoints(map(url_of, "abc"))

        assert {0} == {each.in_flight for each in group.states.values()}


class TestReady:
    """A program that waits for the first list."""

    async def test_returns_the_endpoints(self):
        """Case 123: at once, or when they are there."""
        group = empty()
        filling = asyncio.create_task(fill_at(group, 2.0))
        first = await group.when_ready()
        moment = now()
        await filling

        assert (2, 2.0) == (len(first), moment)
        assert first == await group.when_ready(timeout=1.0)

    async def test_no_longer_than_its_time(self):
        """Case 123: an error that names the group."""
        with pytest.raises(
            EndpointSelectionTimeoutError, match="'orders': no endpoint in time"
        ):
            await empty().when_ready(timeout=2.0)

        assert 2.0 == now()

    @pytest.mark.parametrize("seconds", [0, -1, "1"])
    async def test_bad_time_is_refused(self, seconds):
        """None is for any."""
        with pytest.raises(ValueError, match="^timeout: "):
            await empty().when_ready(seconds)

    async def test_group_that_is_given_is_ready(self):
        """Case 123: of servers that are known."""
        group = EndpointGroup.of("http://a.example")

        assert group.endpoints == await group.when_ready()


class TestQueries:
    """Lists that are asked for."""

    async def test_failed_refresh_keeps_the_list(self):
        """Case 107: with a growing pause between queries."""
        group, names = named(["10.0.0.1"], OSError("busy"))
        async with Fleet().session(group) as client:
            while now() < 200.0:
                assert 200 == (await call(client))[0]
                await asyncio.sleep(0.5)

        pauses = [later - one for one, later in itertools.pairwise(names.times)]
        for expected, pause in zip((5, 1, 2, 4, 8, 16, 32, 32), pauses, strict=False):
            assert 0.8 * expected <= pause <= 1.2 * expected + 0.5

    async def test_empty_answer_is_believed_the_second_time(self):
        """Case 111: until then the list serves."""
        group, _names = named(["10.0.0.1"], [])
        async with Fleet().session(group, timeout=0.1) as client:
            found = []
            for moment in (0.0, 5.0, 5.5, 6.5, 7.0):
                await at(moment)
                found.append((await call(client))[0])

        assert [200, 200, 200, 200] == found[:4]
        assert isinstance(found[4], ResponseTimeoutError)

    async def test_list_that_is_too_old_serves_where_there_is_no_other(self):
        """Rather than none, at the end of the wait."""
        group, names = named(["10.0.0.1"])
        async with Fleet().session(group) as client:
            await call(client)
            await at(100.0)
            names.takes = 4.0
            status, log = await call(client)
            _, again = await call(client)
            await asyncio.sleep(1.0)

        assert (200, None) == (status, again.delay)
        assert 3.2 == pytest.approx(log.delay)

    async def test_no_task_and_no_timer_when_nobody_calls(self):
        """Case 118: between the queries."""
        group, _ = named(["10.0.0.1"])
        loop = asyncio.get_running_loop()
        async with Fleet().session(group) as client:
            await call(client)
            await asyncio.sleep(0)
            left = [each for each in loop._scheduled if not each.cancelled()]

        assert ([], 1) == (left, len(asyncio.all_tasks()))

    async def test_new_loop_asks_anew(self):
        """Case 119: what was found belongs to another clock."""
        group, names = named(["10.0.0.1"])

        def run():
            async def once():
                async with Fleet().session(group) as client:
                    return (await call(client))[0]

            return in_virtual_time(once())

        statuses = [await asyncio.to_thread(run) for _ in range(2)]

        assert ([200, 200], 2) == (statuses, len(names.times))

    async def test_bad_refresh_is_refused_when_the_group_is_made(self):
        """Not at the first call."""
        for refresh in [(5, 1), (0, 1), 7]:
            with pytest.raises(ValueError, match="^refresh: "):
                named(["10.0.0.1"], refresh=refresh)
