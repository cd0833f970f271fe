"""Random schedules leave nothing behind: no request under way, no task, no timer."""

from __future__ import annotations

import asyncio
import gc
from itertools import repeat
from random import Random

import aiohttp
import pytest
from chains import impatient, refused

from aioretry_smithy import (
    Backoff,
    ConcurrencyLimitingClient,
    EndpointGroup,
    EndpointSelectionStrategy,
    HedgingClient,
    OutlierDetection,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
    new_response,
)
from aioretry_smithy.testing import ScriptedTransport, VirtualTimeLoop
from aioretry_smithy.testing._fleet import isolated

pytestmark = pytest.mark.slow

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


def chain(chance, group):
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


async def call(chance, session):
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
    async with chain(chance, group).build() as session:
        calls = (call(chance, session) for _ in range(CALLS))
        await impatient(chance, calls, pauses=PAUSES, cancelled=0.4)
        # What was superseded or cancelled ends in the next turns.
        await asyncio.sleep(0.0)
        await asyncio.sleep(0.0)
        under_way = asyncio.all_tasks() - {asyncio.current_task()}
        states = [*group.states.values()]
        timers = [each for each in loop._scheduled if not each.cancelled()]
        trials = [each.trial for each in states]
    return states, under_way, timers, trials


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
