"""Replicas of a service in virtual time, some of them in trouble for a while.

The model of the goals: calls come at random, each answer takes a lognormal time with a
median of 10 ms, and what an endpoint does in its trouble is a plain function.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import repeat
from statistics import fmean

import aiohttp
from chains import refused

from aioretry_smithy import (
    Backoff,
    EndpointGroup,
    HedgingClient,
    RetryBudget,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
)
from aioretry_smithy.testing import ScriptedTransport, VirtualTimeLoop
from aioretry_smithy.testing._fleet import chance, isolated

BEGIN, LENGTH = 10.0, 40.0
"""When trouble begins, and how many seconds it lasts, unless told otherwise."""

SEEDS = (1, 2, 3)
MEDIAN, SIGMA = 0.010, 0.5


def well(since, seconds):
    return 200, seconds


def refuses(since, seconds):
    return refused(), 0.0


def unavailable(since, seconds):
    return 503, 0.0


def swallows(since, seconds):
    return 200, math.inf


def slower(times):
    return lambda since, seconds: (200, seconds * times)


class Worker:
    """A replica that serves so many at once, the others in turn.

    Args:
        places: So many.
        down: The seconds that it takes no connections, from when its trouble begins.
        cold: The seconds from its first answer after that in which it is slow.
        times: How many times as slow.
    """

    def __init__(self, places, down=0.0, cold=0.0, times=1.0):
        self._free_at = [0.0] * places
        self._down, self._cold, self._times = down, cold, times
        self.back_at = None

    def __call__(self, since, seconds):
        if 0.0 <= since < self._down:
            return refuses(since, seconds)
        now = asyncio.get_running_loop().time()
        if since >= self._down and self.back_at is None:
            self.back_at = now
        if self.back_at is not None and now < self.back_at + self._cold:
            seconds *= self._times
        first = min(range(len(self._free_at)), key=self._free_at.__getitem__)
        self._free_at[first] = done = max(now, self._free_at[first]) + seconds
        return 200, done - now


@dataclass(frozen=True)
class Run:
    """What became of the calls, and where the requests went."""

    calls: list[tuple[float, float, bool]] = field(default_factory=list)
    """When each began, when it ended, and whether it succeeded."""

    sent: list[tuple[float, int]] = field(default_factory=list)
    """When each request was sent, and to which replica."""

    def _calls(self, begin, end):
        return [each for each in self.calls if begin <= each[0] < end]

    def success(self, begin=BEGIN, end=math.inf):
        calls = self._calls(begin, end)
        return sum(succeeded for *_, succeeded in calls) / len(calls)

    def percentile(self, share, begin=BEGIN, end=BEGIN + LENGTH):
        """Return the milliseconds that so many of the calls took at most."""
        took = sorted(ended - began for began, ended, _ in self._calls(begin, end))
        return took[math.ceil(share * len(took)) - 1] * 1e3

    def within(self, seconds, begin, end):
        """Return the share of calls that succeeded in so many seconds."""
        calls = self._calls(begin, end)
        return sum(ok and e - b <= seconds for b, e, ok in calls) / len(calls)

    def sent_to(self, replica, begin=BEGIN, end=BEGIN + LENGTH):
        """Return when requests were sent to a replica."""
        return [at for at, to in self.sent if to == replica and begin <= at < end]

    def sent_between(self, begin, end):
        """Count the requests to each replica."""
        return Counter(to for at, to in self.sent if begin <= at < end)

    def share(self, replica, begin=BEGIN):
        sent = self.sent_between(begin, BEGIN + LENGTH)
        return sent[replica] / sent.total()

    def attempts_per_call(self, begin=BEGIN, end=BEGIN + LENGTH):
        return self.sent_between(begin, end).total() / len(self._calls(begin, end))


class _Forgetful(ScriptedTransport):
    """Keeps no request, since there are so many."""

    def start(self, ctx, request):
        self.requests.clear()
        self.contexts.clear()
        return super().start(ctx, request)


def retrying_chain(
    group, transport, *outside, attempts=3, timeout=1.0, limiter=None, strategy=None
):
    """Retry as the figures do: three attempts, full jitter, a budget of one a retry."""
    backoff = Backoff.exponential(0.1, 20.0).with_full_jitter()
    retrying = RetryingClient.new_decorator(
        strategy or RetryStrategy.failsafe(backoff),
        attempt_timeout=timeout,
        max_total_attempts=attempts,
        limiter=RetryBudget.per_host() if limiter is None else limiter,
    )
    builder = SessionBuilder(group).decorator(transport)
    for each in (retrying, *outside):
        builder.decorator(each)
    return builder.response_timeout(30.0)


def standard_chain(group, transport):
    return SessionBuilder.standard(
        group, attempt_timeout=1.0, logging=None, inside=[transport]
    )


def hedging_chain(group, transport):
    builder = SessionBuilder(group).decorator(transport)
    return builder.decorator(HedgingClient.new_decorator(0.030)).response_timeout(30.0)


class _Replicas:
    """The replicas of a run, each in trouble for a while or not."""

    def __init__(self, seed, usual, troubles, trouble, usual_time, done):
        self.urls = [f"http://{number}.example" for number in range(len(usual))]
        self._number_of = {f"{n}.example": n for n in range(len(usual))}
        self._usual, self._troubles = usual, troubles
        self._begin, length = trouble
        self._end = self._begin + length
        self._median, self._sigma = usual_time
        self._draw, self._done = chance(seed, 1), done

    async def answer(self, ctx, request):
        now, number = (
            asyncio.get_running_loop().time(),
            self._number_of[ctx.endpoint.url.host],
        )
        self._done.sent.append((now, number))
        replica = self._usual[number]
        if self._begin <= now < self._end:
            replica = self._troubles.get(number, replica)
        seconds = self._median * math.exp(self._sigma * self._draw.gauss(0.0, 1.0))
        result, wait = replica(now - self._begin, seconds)
        if wait:
            await asyncio.sleep(min(wait, 3600.0))
        if isinstance(result, BaseException):
            raise result
        return result


async def _call(session, done):
    loop = asyncio.get_running_loop()
    began, succeeded = loop.time(), False
    with suppress(aiohttp.ClientError, TimeoutError):
        async with session.get("/orders") as response:
            succeeded = response.status == 200
    done.calls.append((began, loop.time(), succeeded))


async def _at_random(seed, sessions, rate, end):
    """Yield a session at each moment when a call is to begin."""
    loop, arrivals = asyncio.get_running_loop(), chance(seed, 0)
    while True:
        await asyncio.sleep(arrivals.expovariate(rate))
        if loop.time() >= end:
            break
        yield sessions[int(arrivals.random() * len(sessions))]


def run(
    seed,
    troubles,
    *,
    replicas=3,
    begin=BEGIN,
    length=LENGTH,
    end=BEGIN + LENGTH,
    rate=200.0,
    median=MEDIAN,
    sigma=SIGMA,
    processes=1,
    usual=lambda: well,
    chain=retrying_chain,
    **settings,
):
    """Call replicas, of which some are in trouble for a while; see what becomes of it.

    Args:
        seed: The seed of all that is random.
        troubles: What some of them do meanwhile.
        replicas: How many there are.
        begin: When the trouble begins.
        length: How long it lasts.
        end: When the last call begins.
        rate: Calls a second.
        median: The usual seconds for an answer.
        sigma: How much these differ.
        processes: So many clients, each with a group of its own.
        usual: Makes what one does out of trouble.
        chain: Makes the chain.
        settings: Those of the group.
    """
    done = Run()
    usually = [usual() for _ in range(replicas)]
    times = median, sigma
    them = _Replicas(seed, usually, troubles, (begin, length), times, done)

    async def all_calls():
        sessions = []
        for _ in range(processes):
            group = EndpointGroup.of(*them.urls, **settings)
            transport = _Forgetful(repeat(them.answer))
            sessions.append(chain(group, transport).build())
        async with asyncio.TaskGroup() as calls:
            async for session in _at_random(seed, sessions, rate, end):
                calls.create_task(_call(session, done))
        for session in sessions:
            await session.close()

    with isolated(seed), asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(all_calls())
    return done


def mean(runs, measure):
    return fmean(map(measure, runs))
