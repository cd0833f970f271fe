"""When a call ends, and why, against a naive reckoning, in virtual time."""

from __future__ import annotations

import asyncio
import math
from typing import NamedTuple

import aiohttp
from chains import chain, drawing, in_virtual_time
from hypothesis import example, given
from hypothesis import strategies as st

from aioretry_smithy import (
    AttemptTimeoutError,
    Backoff,
    RequestLog,
    ResponseTimeoutError,
    RetryingClient,
    RetryStrategy,
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


@given(schedules)
def test_call_never_outlives_its_deadline(schedule):
    """Whatever happens, the caller has an answer when the deadline passes."""
    now, *_ = in_virtual_time(run(schedule))

    assert now <= schedule.timeout
