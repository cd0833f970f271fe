"""Requests on their way to an endpoint, and what is under way there.

Of the cases of endpoints.md (f): 95 to 99, 142; 100 is in tests/integration.
"""

import asyncio
import gc
import itertools
import random
from itertools import repeat
from random import Random
from types import SimpleNamespace
from unittest.mock import MagicMock

import aiohttp
import pytest
from balanced import ROUND_ROBIN, Fleet, call, group_of, out, state_of
from chains import SAFELY, after, chain, impatient, refused, retrying, session, silence

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitState,
    ConcurrencyLimitingClient,
    EndpointGroup,
    EndpointSelectionStrategy,
    HedgingClient,
    LoadBalancingClient,
    LoggingClient,
    OutlierDetection,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
    client_decorator,
    new_response,
)
from aioretry_smithy.testing import ScriptedTransport, VirtualTimeLoop
from aioretry_smithy.testing._fleet import isolated

PEAK_EWMA = EndpointSelectionStrategy.peak_ewma()


def hedging(delay=1.0, hedges=1):
    """Send so many hedges, each after a delay."""
    return HedgingClient.new_decorator(delay, max_hedges=hedges)


def in_flight(group):
    """Return what is under way at each endpoint."""
    return [each.in_flight for each in group.states.values()]


class TestHedges:
    """Requests beside others."""

    async def test_two_hedges_three_endpoints(self):
        """Case 95: each one its own."""
        fleet = Fleet(a=silence, b=silence)
        async with fleet.session(group_of("abc"), hedging(hedges=2)) as client:
            status, log = await call(client)

        assert (200, "abc", "c.example") == (status, fleet.text, log.endpoint)

    async def test_one_endpoint_gets_the_hedge_too(self):
        """Case 96: there is nothing else."""
        fleet = Fleet(a=[after(9.0, 200), 201])
        async with fleet.session(group_of("a"), hedging()) as client:
            status, _ = await call(client)

        assert (201, "aa") == (status, fleet.text)

    async def test_loser_gives_its_time_so_far(self):
        """Case 97: which may only raise what is known."""
        fleet = Fleet(a=[after(0.1, 200), silence, silence], b=after(0.5, 200))
        group = group_of("ab")
        async with fleet.session(group, hedging(0.2)) as client:
            await call(client)
            await call(client)
            first = state_of(group, "a").latency

        assert 0.7 == pytest.approx(first)
        assert state_of(group, "a").is_proven
        assert 0.5 == pytest.approx(state_of(group, "b").latency)

    async def test_short_loss_lowers_nothing(self):
        """Case 97: it was not slow for so long."""
        fleet = Fleet(a=[after(0.9, 200), silence])
        group = group_of("ab")
        async with fleet.session(group, hedging(1.0)) as client:
            await call(client)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.5):
                    await client.get("/orders")

        assert state_of(group, "a").latency >= 0.8

    async def test_loss_counts_as_an_answer_where_there_was_none(self):
        """It is known of it now; the quick choice is open to all then."""
        fleet = Fleet(a=silence)
        group = group_of("ab", selection=PEAK_EWMA)
        async with fleet.session(group, hedging(0.5)) as client:
            while not {"a", "b"} <= {*fleet.asked}:
                await call(client)
            await call(client)

        assert 0 == state_of(group, "a").roster.unproven

    async def test_loser_changes_no_ejection(self):
        """Case 98: it neither failed nor succeeded."""
        detection = OutlierDetection(consecutive_failures=2)
        fleet = Fleet(a=[503, silence, silence, 503, 503])
        group = group_of("abc", outlier_detection=detection)
        async with fleet.session(group, hedging(1.0)) as client:
            await call(client)
            assert 1 == state_of(group, "a").failures
            await call(client)
            await call(client)

        assert (1, {}) == (state_of(group, "a").failures, out(group))
        assert [0, 0, 0] == in_flight(group)

    async def test_fallback_inside_is_no_answer_of_an_endpoint(self):
        """A hedge around a fallback: nothing is learned from what nobody sent."""
        breakers = {}

        def breaker(key):
            breakers[key] = CircuitBreaker(key)
            breakers[key].enter_state(
                CircuitState.FORCED_OPEN if key[0] == "a" else CircuitState.CLOSED
            )
            return breakers[key]

        made = []

        def fallback(ctx, request):
            return made[0]

        async with Fleet(x=299).session(group_of("x")) as other:
            made.append(await other.get("/"))
        fleet = Fleet(b=after(0.5, 200))
        group = group_of("ab")
        inside = CircuitBreakerClient.new_per_host_decorator(breaker, fallback=fallback)
        async with fleet.session(group, inside, hedging(1.0)) as client:
            status, _log = await call(client)

        assert 299 == status
        assert ({}, None) == (out(group), state_of(group, "a").latency)
        assert [0, 0] == in_flight(group)


class TestInFlight:
    """What is under way."""

    async def test_counts_to_the_answer_of_a_mock(self):
        """Its body never ends."""
        seen = []
        group = group_of("a")

        def look(ctx, request):
            seen.append(in_flight(group))
            return (200, "body")

        async with Fleet(a=look).session(group, retrying(SAFELY)) as client:
            response = await client.get("/orders")
            seen.append(in_flight(group))
            await response.read()

        assert [[1], [0]] == seen

    async def test_requests_sent_at_once_in_one_attempt(self):
        """By a decorator of a user's own: each gives back its own place."""

        @client_decorator
        async def both(delegate, ctx, request):
            first, _ = await asyncio.gather(
                delegate.execute(ctx, request), delegate.execute(ctx, request)
            )
            return first

        fleet = Fleet(a=after(1.0, 200), b=after(2.0, 200))
        group = group_of("ab", selection=ROUND_ROBIN)
        balancing = LoadBalancingClient.new_decorator(group)
        async with session(fleet.transport, balancing, both) as client:
            status, _ = await call(client)

        assert (200, ["a", "b"]) == (status, sorted(fleet.asked))
        assert [0, 0] == in_flight(group)

    @pytest.mark.slow
    async def test_cancelled_at_every_await(self):
        """At each turn of the loop of one call, whatever that waits for."""
        statuses = set()
        for turns in range(60):
            fleet = Fleet(a=[refused(), after(0.0, 503)], b=after(0.0, 200))
            group = group_of("ab")
            client = fleet.session(
                group, hedging(0.0), retrying(0.0), LoggingClient.new_decorator()
            )
            async with client:
                await call(client)
                await asyncio.sleep(7.0)
                task = asyncio.create_task(client.get("/orders"))
                for _ in range(turns):
                    await asyncio.sleep(0)
                task.cancel()
                done = await asyncio.gather(task, return_exceptions=True)
                statuses.add(type(done[0]).__name__)
                await asyncio.sleep(0)

            assert [0, 0] == in_flight(group)
            assert state_of(group, "a").trial is None

        assert {"CancelledError", "ClientResponse"} == statuses


class TestEndpoint:
    """What a call knows of its endpoint."""

    async def test_replaced_response_is_the_users(self):
        """A mock that is no response of aiohttp's has no connection that ends."""

        class Mock:
            status, reason, headers, history = 200, "OK", {}, ()
            content, connection = SimpleNamespace(total_bytes=0), MagicMock()
            request_info = SimpleNamespace(headers={})
            closed = True

            def release(self):
                pass

            close = release

        fleet = Fleet()
        group = group_of("a")

        @client_decorator
        async def mock(delegate, ctx, request):
            (await delegate.execute(ctx, request)).close()
            return Mock()

        async with fleet.session(group, mock, retrying(SAFELY)) as client:
            response = await client._request("GET", "/orders")

        assert (200, [0]) == (response.status, in_flight(group))


@pytest.mark.slow
async def test_many_calls_leave_no_growth():
    """Case 142: of paths that are known, with failures of all kinds."""
    chance = random.Random(1)
    kinds = [*[200] * 30, 503, 404, (503, {"Retry-After": "1"}, b""), refused()]

    def respond(ctx, request):
        return chance.choice(kinds)

    transport = ScriptedTransport(itertools.repeat(respond))
    # It keeps all that it saw, else.
    transport.contexts = transport.requests = SimpleNamespace(append=lambda each: None)
    group, sizes = group_of("abc", selection=PEAK_EWMA), []
    client = chain(transport, retrying(0.001), base_url=group).build()
    async with client:
        for _ in range(3):
            for number in range(2000):
                await call(client, f"/{number % 50}")
                await asyncio.sleep(0.01)
            gc.collect()
            sizes.append(len(gc.get_objects()))

    assert sizes[2] - sizes[1] < 50
    assert [0, 0, 0] == in_flight(group)


async def test_any_number_of_paths_is_kept_in_bounds():
    """Case 142: what was found of each is found anew."""
    group = group_of("a")
    async with Fleet().session(group) as client:
        for number in range(2500):
            await call(client, f"/{number}")

    assert len(state_of(group, "a")._urls) <= 1024


SCHEDULES = 1000
CALLS = 5
PAUSES = 0.0, 0.0, 0.01, 0.05, 0.4
SELECTIONS = (
    EndpointSelectionStrategy.peak_ewma(),
    EndpointSelectionStrategy.least_requests(),
    EndpointSelectionStrategy.round_robin(),
    EndpointSelectionStrategy.in_order(),
    EndpointSelectionStrategy.sticky(lambda ctx: ctx.request.method),
)


class Held:
    """A connection that a response holds until it is released, closed or dropped."""

    def __init__(self):
        self._callbacks = []
        self.protocol = self.transport = None

    def add_callback(self, callback):
        self._callbacks.append(callback)

    def release(self):
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    close = __del__ = release


def transport(chance):
    """Answer by chance: with or without a body, late, not at all, or by a failure."""

    async def answer(ctx, request):
        await asyncio.sleep(chance.choice((0.0, 0.0, 0.02, 0.1, 0.6, 1e6)))
        kind = chance.choice(("ok", "ok", "held", "held", 404, 500, 503, "after", "no"))
        if kind == "no":
            raise chance.choice((refused(), aiohttp.ServerDisconnectedError()))
        if kind == "after":
            return 503, {"Retry-After": "1"}, b""
        if isinstance(kind, int):
            return kind
        response = new_response(request, 200, body=b"ok")
        if kind == "held":
            response._closed, response._connection = False, Held()
        return response

    return ScriptedTransport(repeat(answer))


def chain_by_chance(chance, group):
    """Put by chance what may be around and within the balancing client."""
    inside, outside = [], []
    if chance.random() < 0.5:
        limit = ConcurrencyLimitingClient.new_per_host_decorator(
            lambda host: 1, timeout=0.3
        )
        inside.append(limit)
    if chance.random() < 0.5:
        outside.append(HedgingClient.new_decorator(0.05, max_hedges=2))
    if chance.random() < 0.7:
        retrying = RetryingClient.new_decorator(
            RetryStrategy.failsafe(Backoff.fixed(0.1)),
            max_total_attempts=4,
            attempt_timeout=chance.choice((None, 0.3)),
        )
        outside.append(retrying)
    builder = SessionBuilder(group)
    for each in (transport(chance), *inside, *outside):
        builder.decorator(each)
    return builder.response_timeout(chance.choice((0.5, 8.0)))


async def call_somehow(chance, session):
    """Make one call; read, release, close or drop what comes."""
    method = chance.choice(("GET", "POST"))
    response = await session.request(method, "/orders")
    end = chance.choice(("read", "release", "close", "drop", "later"))
    if end == "later":
        await asyncio.sleep(0.2)
    if end == "drop":
        return
    if end == "close":
        response.close()
    elif end == "read":
        async with response:
            await response.read()
    else:
        response.release()


async def schedule(seed):
    """Make some calls of which some are cancelled; return what is left of them."""
    chance = Random(seed)
    loop = asyncio.get_running_loop()
    urls = [f"http://{n}.example" for n in range(chance.choice((1, 2, 3, 4)))]
    detection = OutlierDetection(consecutive_failures=2, ejection_time=0.2)
    group = EndpointGroup.of(
        *urls,
        selection=chance.choice(SELECTIONS),
        outlier_detection=chance.choice((detection, detection, None)),
    )
    async with chain_by_chance(chance, group).build() as session:
        calls = (call_somehow(chance, session) for _ in range(CALLS))
        await impatient(chance, calls, pauses=PAUSES, cancelled=0.4)
        # What was superseded or cancelled ends in the next turns.
        await asyncio.sleep(0.0)
        await asyncio.sleep(0.0)
        under_way = asyncio.all_tasks() - {asyncio.current_task()}
        states = [*group.states.values()]
        timers = [each for each in loop._scheduled if not each.cancelled()]
        trials = [each.trial for each in states]
    return states, under_way, timers, trials


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_nothing_is_left_of_calls_that_ended_somehow(part):
    """However they ended: with an answer that was dropped, cut, hedged or cancelled."""
    for seed in range(part, SCHEDULES, 10):
        with isolated(seed), asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            states, under_way, timers, trials = runner.run(schedule(seed))
        gc.collect(0)

        assert [0] * len(states) == [each.in_flight for each in states], seed
        assert [None] * len(states) == trials, seed
        assert (set(), []) == (under_way, timers), seed
