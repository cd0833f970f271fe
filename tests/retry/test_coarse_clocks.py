"""Deadlines on clocks with ticks of 1 ms (uvloop) and of 15.6 ms (Windows)."""

from __future__ import annotations

import asyncio
import math

import aiohttp
import chains
import pytest
from chains import response_of, session
from hypothesis import given
from hypothesis import strategies as st

from aioretry_smithy import (
    AttemptTimeoutError,
    DecoratingClient,
    RequestLog,
    ResponseTimeoutError,
    RetryStopReason,
)
from aioretry_smithy.testing import VirtualTimeLoop

# Near enough, and powers of two, whose multiples are exact.
TICKS = (2**-10, 2**-6)
offsets = st.floats(0.0, 0.05)
each_tick = pytest.mark.parametrize("tick", TICKS)


class CoarseLoop(VirtualTimeLoop):
    """Shows the time in whole ticks, and fires what is due within the present one."""

    def __init__(self, tick: float) -> None:
        self.tick = tick
        super().__init__()

    def exact(self) -> float:
        """Return the time between its ticks, too."""
        return super().time()

    def time(self) -> float:
        return math.floor(super().time() / self.tick) * self.tick

    def _set_time(self, now: float) -> None:
        super()._set_time(now)
        self._clock_resolution = self.tick


def call(tick, offset, answer, *decorators, timeout):
    """Make a call that begins *offset* after a tick; return its log and its error."""

    async def main():
        await asyncio.sleep(offset)
        answers = [answer] * 1000
        with pytest.raises(aiohttp.ServerConnectionError) as caught:
            await response_of(session(answers, *decorators, timeout=timeout))
        log = RequestLog.of(caught.value)
        began = log.started
        starts = [child.started - began for child in log.children]
        return log, caught.value, starts

    with asyncio.Runner(loop_factory=lambda: CoarseLoop(tick)) as runner:
        return runner.run(main())


async def silent(ctx, request):
    await asyncio.sleep(3600.0)


def retrying(attempt_timeout, delay=0.0):
    return chains.retrying(
        delay, max_total_attempts=1000, attempt_timeout=attempt_timeout
    )


@each_tick
@given(offset=offsets, timeout=st.floats(0.2, 2.0), part=st.floats(0.2, 1.0))
def test_call_that_its_deadline_cut_says_so(tick, offset, timeout, part):
    """However attempts and ticks fall, no attempt goes out in the last tick."""
    attempts = retrying(part * timeout)
    log, error, starts = call(tick, offset, silent, attempts, timeout=timeout)

    assert ResponseTimeoutError is type(error)
    assert RetryStopReason.DEADLINE is log.stop_reason
    assert all(timeout - start > tick for start in starts[1:])


@each_tick
@given(offset=offsets)
def test_coarse_clock_makes_no_more_attempts(tick, offset):
    """Three attempts of 3 s and a fourth that is cut, by any clock."""
    log, error, starts = call(tick, offset, silent, retrying(3.0), timeout=10.0)

    assert ResponseTimeoutError is type(error)
    assert [0, 3, 6, 9] == [round(start) for start in starts]
    kinds = [type(child.response_cause) for child in log.children]
    assert [*[AttemptTimeoutError] * 3, ResponseTimeoutError] == kinds


@each_tick
@given(offset=offsets)
def test_wait_that_ends_in_the_last_tick_is_not_begun(tick, offset):
    """An attempt that could only begin then helps nobody."""
    attempts = retrying(None, 1.0)
    answer = aiohttp.ServerDisconnectedError()
    log, error, starts = call(tick, offset, answer, attempts, timeout=1.0 + tick / 2)

    assert [0.0] == starts
    assert answer is error
    assert RetryStopReason.DEADLINE is log.stop_reason


@each_tick
@given(offset=offsets)
def test_failure_in_the_last_tick_is_the_deadline(tick, offset):
    """A failure of any kind in the very last moment is not retried any more."""

    async def late(ctx, request):
        await asyncio.sleep(1.0 - tick / 2)
        raise TimeoutError

    _, error, starts = call(tick, offset, late, retrying(None), timeout=1.0)

    assert [0.0] == starts
    assert ResponseTimeoutError is type(error)


@each_tick
@given(offset=offsets)
def test_call_that_nothing_retries_says_so_too(tick, offset):
    """A chain without a retrying client knows its deadline as well."""
    _, error, _ = call(tick, offset, silent, DecoratingClient, timeout=1.0)

    assert ResponseTimeoutError is type(error)
    assert "the call had 1.000 s" == str(error)
    assert TimeoutError is type(error.__cause__)


def test_attempt_of_less_than_a_tick_is_made():
    """A limit below the resolution of the clock does not keep a call from starting."""
    attempts = retrying(0.001)
    _, error, starts = call(2**-6, 0.0, silent, attempts, timeout=0.01)

    assert [0.0] == starts
    assert ResponseTimeoutError is type(error)


@each_tick
@given(offset=offsets, hint=st.integers(0, 200).map(lambda ms: ms / 1000))
def test_hint_is_never_waited_for_too_short(tick, offset, hint):
    """It is rounded up to the clock, since a timer may be a tick early."""
    sent = []
    loop = CoarseLoop(tick)

    def answer(ctx, request):
        sent.append(loop.exact())
        return (503, {"Retry-After": f"{hint}"}, b"") if len(sent) == 1 else 200

    async def main():
        await asyncio.sleep(offset)
        await response_of(session([answer] * 2, retrying(None)))

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(main())

    waited = sent[1] - sent[0]
    assert hint <= waited + 1e-9
    assert waited <= hint + 3 * tick


@each_tick
def test_hint_that_just_fits_is_not_rounded_up(tick):
    """The call is worth more than the tick."""
    answers = [(503, {"Retry-After": "1"}, b""), 200]

    async def main():
        client = session(answers, retrying(None), timeout=1.0 + 1.5 * tick)
        return (await response_of(client)).status

    with asyncio.Runner(loop_factory=lambda: CoarseLoop(tick)) as runner:
        assert 200 == runner.run(main())
