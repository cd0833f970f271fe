"""Races of hedges end as in a naive reckoning, in virtual time."""

from __future__ import annotations

import asyncio
import math
from itertools import cycle
from typing import NamedTuple

import aiohttp
from chains import in_virtual_time, retrying
from hypothesis import example, given
from hypothesis import strategies as st
from races import hedging, race, sent

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerClient,
    ConcurrencyLimit,
    ConcurrencyLimitingClient,
    RetryLimiter,
    RetryStrategy,
)
from aioretry_smithy.testing import ScriptedTransport

TICK = 1 / 8
"""Delays are multiples of it, so that sums are exact."""

GOOD = {200, 404}
BAD = {503, 429, "hint", "broken", "mistake"}
FAILURES = {
    "broken": aiohttp.ServerDisconnectedError,
    "mistake": ValueError,
    "cancelled": asyncio.CancelledError,
}
END_HEDGING = {"hint", "mistake"}


class Step(NamedTuple):
    """The part of one request: its end, its time, and whether it can be cancelled."""

    outcome: object
    seconds: float
    is_stubborn: bool


class Schedule(NamedTuple):
    """The parts of the requests, their greatest number, and the time of the caller."""

    steps: list
    delay: float
    max_hedges: int
    permits: int
    cancelled: float


class Request(NamedTuple):
    """A request that was sent, and how it will end by itself."""

    number: int
    start: float
    end: float
    outcome: object


class Reckoning:
    """A race, step by step from one moment at which something happens to the next."""

    def __init__(self, schedule):
        self.schedule = schedule
        self.hedges = schedule.max_hedges
        self.asked = 0
        self.shown = []
        self.under_way = []
        self.best = None

    def send(self, now):
        number = len(self.shown)
        outcome, seconds, _ = self.schedule.steps[number]
        self.under_way.append(Request(number, now, now + seconds, outcome))
        self.shown.append((now, None, None))

    def hedge(self, now):
        """Send another one, if the limiter has a permit."""
        self.hedges -= 1
        self.asked += 1
        if self.asked > self.schedule.permits:
            self.hedges = 0
        else:
            self.send(now)

    def end(self, request, now, word):
        self.under_way.remove(request)
        taken = round(now - request.start, 6)
        self.shown[request.number] = (round(request.start, 6), word, taken)

    def run(self):
        """Return when it ends, with what, and what became of each request."""
        self.send(0.0)
        timer = self.schedule.delay
        while self.under_way:
            request = min(self.under_way, key=lambda each: each.end)
            hedge_at = timer if self.hedges > 0 else math.inf
            now = min(request.end, hedge_at, self.schedule.cancelled)
            if now == self.schedule.cancelled:
                return self.stop(now, "cancelled", FAILURES["cancelled"])
            if now == hedge_at:
                self.hedge(now)
            else:
                outcome = request.outcome
                self.end(request, now, shown(outcome))
                if outcome in GOOD:
                    return self.stop(now, outcome, None)
                if outcome not in FAILURES or self.best is None:
                    self.best = outcome
                if outcome in END_HEDGING:
                    self.hedges = 0
                if self.hedges > 0:
                    self.hedge(now)
            timer = now + self.schedule.delay
        return self.stop(now, self.best, None)

    def stop(self, now, outcome, word):
        for request in [*self.under_way]:
            self.end(request, now, word)
        return round(now, 6), shown(outcome), self.shown, self.asked


def shown(outcome):
    return 503 if outcome == "hint" else FAILURES.get(outcome, outcome)


class Permits(RetryLimiter):
    """Gives so many permits, and counts what becomes of them."""

    def __init__(self, number):
        self.number = number
        self.asked = self.ended = 0

    def acquire(self, ctx, cause):
        self.asked += 1
        return self.asked <= self.number

    def on_retry_end(self, ctx):
        self.ended += 1


def performing(step):
    async def perform(ctx, request):
        try:
            if step.seconds:
                await asyncio.sleep(step.seconds)
        except asyncio.CancelledError:
            if not step.is_stubborn:
                raise
            await asyncio.sleep(1.0)
        if step.outcome in FAILURES:
            raise FAILURES[step.outcome]
        if step.outcome == "hint":
            return 503, {"Retry-After": "1"}, b""
        return step.outcome

    return perform


async def run(schedule):
    """Let a real call meet the same schedule."""
    limiter = Permits(schedule.permits)
    decorator = hedging(schedule.delay, max_hedges=schedule.max_hedges, limiter=limiter)
    answers = [performing(step) for step in schedule.steps]
    moment = None if schedule.cancelled == math.inf else schedule.cancelled
    outcome, ended, log = await race(answers, decorator, cancel_after=moment)
    requests = sent(log)
    await asyncio.sleep(1.0)
    await asyncio.sleep(0)

    assert {asyncio.current_task()} == asyncio.all_tasks()
    assert requests == sent(log)
    assert len(requests) - 1 == limiter.ended
    if isinstance(outcome, TimeoutError):
        outcome = asyncio.CancelledError()
    word = outcome if isinstance(outcome, int) else type(outcome)
    return ended, word, requests, limiter.asked


ticks = st.integers(1, 8).map(lambda count: count * TICK)


@st.composite
def steps(draw):
    """Return what each request does; each takes a time that no other sum can be."""
    found = []
    for number in range(5):
        seconds = draw(
            st.just(0.0) | ticks.map(lambda t, n=number: t + 2.0 ** -(n + 10))
        )
        outcome = draw(st.sampled_from([*GOOD, *BAD, 503, "broken"]))
        found.append(Step(outcome, seconds, draw(st.booleans())))
    return found


schedules = st.builds(
    Schedule,
    steps=steps(),
    delay=ticks,
    max_hedges=st.integers(1, 4),
    permits=st.integers(0, 5),
    cancelled=st.just(math.inf) | ticks.map(lambda t: t + 2.0**-17),
)


def alike(outcome, seconds, **changes):
    """Return a schedule of requests that do the same."""
    usual = Schedule([Step(outcome, seconds, True)] * 5, TICK, 4, 5, math.inf)
    return usual._replace(**changes)


@given(schedules)
@example(alike(503, 0.0))
@example(alike("broken", 0.0, permits=2))
@example(alike("hint", 2.0, cancelled=1 + 2.0**-17))
def test_a_race_ends_as_reckoned(schedule):
    """The end, its time, each request and each permit are those of plain ifs."""
    actual = in_virtual_time(run(schedule))

    assert Reckoning(schedule).run() == actual


class Chain(NamedTuple):
    """Retries around races, and what stands inside."""

    schedule: Schedule
    attempt_timeout: float
    timeout: float
    max_attempts: int
    places: int


class Seen(RetryStrategy):
    """Retries what is bad, and keeps what it saw of each attempt."""

    def __init__(self):
        self.logs = []

    def should_retry(self, ctx, cause):
        self.logs.append(ctx.log)
        is_bad = cause is not None or (ctx.log.response_status or 0) >= 429
        return Backoff.fixed(TICK) if is_bad else None


async def run_chain(chain):
    """Make a call through a whole chain; return its log and what is left."""
    schedule, strategy = chain.schedule, Seen()
    limiter = Permits(schedule.permits)
    limit, breaker = ConcurrencyLimit.fixed(chain.places), CircuitBreaker()
    # One that ignores its cancellation ignores its time limits too.
    steps = [step._replace(is_stubborn=False) for step in schedule.steps]
    transport = ScriptedTransport(map(performing, cycle(steps)))
    limiting = ConcurrencyLimitingClient.new_decorator(limit, timeout=TICK)
    _, ended, log = await race(
        transport,
        limiting,
        CircuitBreakerClient.new_decorator(breaker),
        hedging(schedule.delay, max_hedges=schedule.max_hedges, limiter=limiter),
        retrying(
            strategy,
            attempt_timeout=chain.attempt_timeout,
            max_total_attempts=chain.max_attempts,
        ),
        seconds=chain.timeout,
        cancel_after=None if schedule.cancelled == math.inf else schedule.cancelled,
    )
    await asyncio.sleep(1.0)
    await asyncio.sleep(0)

    assert {asyncio.current_task()} == asyncio.all_tasks()
    assert (0, 0) == (limit.in_flight, limit.pending)
    # The transport refuses what comes when time is up.
    assert len(transport.requests) >= sum(each.sent for each in log.children)
    assert limiter.ended == sum(each.is_hedge for each in log.children)
    return ended, log, strategy.logs


chains = st.builds(
    Chain,
    schedule=schedules,
    attempt_timeout=st.integers(1, 8).map(lambda count: count * TICK),
    timeout=st.integers(8, 16).map(lambda count: count * TICK),
    max_attempts=st.integers(1, 3),
    places=st.integers(1, 3),
)


@given(chains)
def test_races_inside_a_whole_chain_leave_nothing(chain):
    """Within the time limits, with a complete log of each request."""
    ended, log, seen = in_virtual_time(run_chain(chain))

    passes = "".join("h" if each.is_hedge else " " for each in log.children).split(" ")
    assert ended <= min(chain.timeout, chain.schedule.cancelled) + 1e-6
    assert all(each.is_complete for each in log.children)
    assert max(map(len, passes)) <= chain.schedule.max_hedges
    assert len(passes) - 1 <= chain.max_attempts
    assert [*range(1, len(log.children) + 1)] == [each.attempt for each in log.children]
    assert not any(each.superseded for each in seen)
