"""When calls end, wait and open circuits, against naive reckonings in virtual time."""

from __future__ import annotations

import asyncio
import math
import random
from contextlib import suppress
from typing import NamedTuple

import aiohttp
import pytest
from chains import URL, chain, drawing, in_virtual_time, now, pass_on, session
from circuits import breaker_of, timers, waiting_at
from hypothesis import example, given
from hypothesis import strategies as st

from aioretry_smithy import (
    AttemptTimeoutError,
    Backoff,
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitBreakerListener,
    CircuitBreakerRuleWithContent,
    CircuitState,
    EventCount,
    RequestLog,
    ResponseTimeoutError,
    RetryingClient,
    RetryStrategy,
    client_decorator,
    new_response,
)

TICK = 1 / 8
"""Waits and limits are multiples of it, so that sums are exact and edges are met."""

MAX_RETRY_AFTER = 2.0


class Listed(Backoff):
    """Delays from a list; None at its end."""

    def __init__(self, delays):
        self.delays = delays

    def next_delay(self, num_attempts_so_far):
        rest = self.delays[num_attempts_so_far - 1 :]
        return rest[0] if rest else None


def taking(seconds, answer):
    async def perform(ctx, request):
        if seconds:
            await asyncio.sleep(seconds)
        return answer

    return perform


def as_answer(outcome, hint):
    if outcome == "broken":
        return aiohttp.ServerDisconnectedError()
    headers = {} if hint is None else {"Retry-After": str(hint)}
    return outcome, headers, b""


class Schedule(NamedTuple):
    """The outcomes of attempts, and the limits that hold for them."""

    steps: list
    delays: list
    attempt_timeout: float
    timeout: float
    max_attempts: int


def reckon(schedule):
    """Return when the call ends, with what, why, after how many attempts."""
    now, made, ended = 0.0, 0, None
    while ended is None:
        outcome, hint, duration = schedule.steps[made]
        made += 1
        limit = min(schedule.attempt_timeout, schedule.timeout - now)
        if duration >= limit:
            duration, outcome, hint = limit, "timeout", None
        now += duration
        if outcome == "timeout" and now >= schedule.timeout:
            ended = "deadline", "deadline"
        elif outcome in {200, 404}:
            ended = outcome, None if outcome == 200 else "no_retry"
        elif (reason := reason_to_stop(schedule, now, made, outcome, hint)) is not None:
            ended = outcome, reason
        else:
            now += max(schedule.delays[made - 1], wish(outcome, hint))
    return now, *ended, made


def wish(outcome, hint):
    """Return the seconds that the server asks for; what broke off asks for none."""
    return 0 if outcome == "broken" or hint is None else hint


def reason_to_stop(schedule, now, made, outcome, hint):
    """Return why a failed attempt is the last one, or None."""
    left = schedule.timeout - now
    rules = {
        "max_total_attempts": lambda: made >= schedule.max_attempts,
        "backoff_exhausted": lambda: made > len(schedule.delays),
        "retry_after_too_long": lambda: wish(outcome, hint) > MAX_RETRY_AFTER,
        "deadline": lambda: schedule.delays[made - 1] >= left,
    }
    for reason, holds in rules.items():
        if holds():
            return reason
    return "retry_after_too_long" if wish(outcome, hint) >= left else None


async def run(schedule):
    """Let a real call meet the same schedule."""
    retrying = RetryingClient.new_decorator(
        RetryStrategy.on_server_error_status(Listed(schedule.delays)),
        attempt_timeout=or_none(min(schedule.attempt_timeout, schedule.timeout)),
        max_total_attempts=schedule.max_attempts,
        max_retry_after=MAX_RETRY_AFTER,
    )
    builder = chain(
        (
            taking(duration, as_answer(outcome, hint))
            for outcome, hint, duration in schedule.steps
        ),
        retrying,
    )
    builder.response_timeout(or_none(schedule.timeout))
    async with builder.build() as session:
        try:
            result = await session.get("http://example.com/")
        except (aiohttp.ClientError, TimeoutError) as error:
            result = error
        now = asyncio.get_running_loop().time()
    log = RequestLog.of(result)
    assert log.duration == now
    return now, word(result), log.stop_reason, log.total_attempts


def or_none(limit):
    return None if limit == math.inf else limit


def word(result):
    if isinstance(result, aiohttp.ClientResponse):
        return result.status
    if isinstance(result, AttemptTimeoutError):
        return "timeout"
    return "deadline" if isinstance(result, ResponseTimeoutError) else "broken"


ticks = st.integers(0, 8).map(lambda count: count * TICK)
limits = st.integers(1, 12).map(lambda count: count * TICK) | st.just(math.inf)
outcomes = st.sampled_from([503, 503, 500, "broken", 200, 404])
hints = st.none() | st.integers(0, 3)


@st.composite
def attempts(draw):
    """Return what each attempt does; each takes a time that no other sum can be.

    A timer of aiohttp and an answer in the same instant would be a toss-up.
    """
    steps = []
    for number in range(6):
        duration = draw(
            st.just(0.0) | ticks.map(lambda t, n=number: t + 2.0 ** -(n + 10))
        )
        steps.append((draw(outcomes), draw(hints), duration))
    return steps


schedules = st.builds(
    Schedule,
    steps=attempts(),
    delays=st.lists(ticks, max_size=5),
    attempt_timeout=limits,
    timeout=limits,
    max_attempts=st.integers(1, 6),
)


def at_once(delay, hint, timeout):
    """Return a schedule of errors that take no time."""
    return Schedule([(503, hint, 0.0)] * 6, [delay], math.inf, timeout, 6)


@given(schedules)
@example(at_once(delay=1.0, hint=None, timeout=1.0))
@example(at_once(delay=0.5, hint=1, timeout=1.0))
@example(at_once(delay=0.5, hint=2, timeout=math.inf))
def test_call_ends_as_reckoned(schedule):
    """The end, its time, its reason and the attempts made are those of plain ifs."""
    with drawing(0.0):
        actual = in_virtual_time(run(schedule))

    assert reckon(schedule) == actual


STATES = [*CircuitState]


async def run_waits(chance):
    """Let requests come, fail, take their time and be cancelled, as chance has it."""
    breaker = breaker_of(
        chance.choice([0.5, 1.0]),
        consecutive_failures=chance.randint(1, 3),
        success_threshold=chance.randint(1, 2),
        # So that a permit which gets lost is missed.
        trial_request_interval=1e6,
    )

    async def answer(ctx, request):
        status = chance.choice([200, 200, 503, TimeoutError()])
        await asyncio.sleep(chance.choice([0.0, 0.0, 0.25, 0.5, 1.5]))
        return status

    async def call(client):
        await asyncio.sleep(chance.randint(0, 12) / 4)
        with suppress(aiohttp.ClientError, TimeoutError):
            async with asyncio.timeout(chance.choice([None, 0.5, 1.0, 2.0])):
                (await client.get(URL)).release()

    async def meddle():
        for _ in range(chance.randint(0, 2)):
            await asyncio.sleep(chance.randint(0, 8) / 4)
            breaker.enter_state(chance.choice(STATES))

    patience = chance.choice([0.5, 1.0, 3.0])
    async with session([answer] * 99, waiting_at(breaker, patience)) as client:
        calls = [call(client) for _ in range(chance.randint(1, 20))]
        await asyncio.gather(meddle(), *calls)

    assert now() < 20.0
    assert (None, 0) == (breaker._line, timers())
    if breaker.state is CircuitState.HALF_OPEN:
        # Nothing is in flight.
        assert 0.0 == breaker.retry_in


@pytest.mark.parametrize("seed", range(100))
def test_no_schedule_loses_a_permit(seed):
    """Nobody waits for ever, nothing is left behind, and a trial is to be had."""
    in_virtual_time(run_waits(random.Random(seed)))


@pytest.mark.long
def test_none_of_three_thousand_schedules_loses_a_permit():
    """As above."""
    for seed in range(100, 3100):
        in_virtual_time(run_waits(random.Random(seed)))


CLOSED, OPEN, HALF_OPEN, FORCED_OPEN = CircuitState

seconds = st.integers(0, 12).map(lambda number: number / 4)
calls = st.lists(
    st.tuples(
        seconds,  # before the next call
        seconds,  # until its answer
        st.sampled_from([200, 200, 500, TimeoutError, b"busy"]),
        st.none() | seconds,  # until it is cancelled
    ),
    min_size=1,
    max_size=40,
)


class Diary(CircuitBreakerListener):
    """A listener that notes what it hears, and when."""

    def __init__(self):
        self.entries = []

    def note(self, *entry):
        self.entries.append((asyncio.get_running_loop().time(), *entry))

    def on_state_changed(self, circuit_breaker, state):
        self.note(state)

    def on_event_count_updated(self, circuit_breaker, event_count):
        self.note(event_count)

    def on_request_rejected(self, circuit_breaker):
        self.note("rejected")


@client_decorator
async def server(delegate, ctx, request):
    """Answer as the request says."""
    delay, answer = request.options["trace_request_ctx"]
    await asyncio.sleep(delay)
    if isinstance(answer, bytes):
        return new_response(request, 200, body=answer)
    if isinstance(answer, int):
        return new_response(request, answer)
    raise answer


def is_busy(content):
    return content == b"busy"


async def diary_of(schedule, trials, *others, enforce=True):
    """Make the calls of a schedule; return the diary and which ones were sent."""
    diary, tasks, sent = Diary(), [], []
    breaker = CircuitBreaker(
        minimum_request_threshold=2,
        success_threshold=trials,
        trial_request_interval=1.5,
        circuit_open_window=Backoff.exponential(1.0, 4.0),
        listeners=[diary],
    )

    @client_decorator
    async def noting(delegate, ctx, request):
        sent.append(ctx.request.options["trace_request_ctx"])
        return await delegate.execute(ctx, request)

    rule = CircuitBreakerRuleWithContent(on_content=is_busy)
    guarded = CircuitBreakerClient.new_decorator(breaker, rule, enforce=enforce)
    async with session([], server, noting, *others, guarded, *others) as client:

        async def call(delay, answer, patience):
            async with asyncio.timeout(patience):
                await client.get("http://a/", trace_request_ctx=(delay, answer))

        for pause, *rest in schedule:
            tasks.append(asyncio.create_task(call(*rest)))
            await asyncio.sleep(pause)
        await asyncio.gather(*tasks, return_exceptions=True)
    return diary.entries, len(sent)


@given(calls, st.integers(1, 3), st.sampled_from([(), (pass_on,)]))
def test_without_acting_it_decides_as_it_does_when_it_acts(schedule, trials, others):
    """Whatever is let through changes no count, no state and no listener's view."""
    acting, refused = in_virtual_time(diary_of(schedule, trials, *others))
    watching, sent = in_virtual_time(diary_of(schedule, trials, *others, enforce=False))

    assert acting == watching
    rejected = sum(entry[1] == "rejected" for entry in acting)
    assert (len(schedule), len(schedule)) == (sent, refused + rejected)


@given(calls, st.integers(1, 3))
def test_states_follow_each_other_as_they_should(schedule, trials):
    """It opens first, is half open after its window, and closes only from there."""
    entries, _ = in_virtual_time(diary_of(schedule, trials))
    states = [(at, state) for at, state in entries if isinstance(state, CircuitState)]
    follows = {CLOSED: {OPEN}, OPEN: {HALF_OPEN}, HALF_OPEN: {OPEN, CLOSED}}

    state, since, window = CLOSED, 0.0, 0.0
    for at, following in states:
        assert following in follows[state]
        if following is HALF_OPEN:
            assert since + window <= at
        if following is OPEN:
            window = 1.0 if state is CLOSED else min(2 * window, 4.0)
        state, since = following, at


@pytest.mark.parametrize("trials", [1, 3])
def test_a_server_that_comes_back_is_called_by_all_again(trials):
    """After as many trials as are asked for, one by one."""
    down = [(0.25, 0.0, 500, None)] * 8
    back = [(0.25, 0.125, 200, None)] * 40
    entries, _ = in_virtual_time(diary_of(down + back, trials))

    states = [state for _, state in entries if isinstance(state, CircuitState)]
    assert CLOSED is states[-1]
    assert EventCount(0, 0) != entries[-1][1]
