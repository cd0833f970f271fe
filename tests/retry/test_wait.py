"""The wait for the next attempt: never shorter than asked, never longer than left."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioretry_smithy import RetryConfig, RetryStopReason, RetryStrategy
from aioretry_smithy._retry.wait import Stop, Wait, plan_wait

seconds = st.floats(min_value=0.0, max_value=1e6)
limits = st.none() | seconds


def plan(delay, hint, remaining, longest=60.0, drawn=0.0):
    config = RetryConfig(RetryStrategy.never(), max_retry_after=longest)
    wait = Wait(delay, "backoff")
    return plan_wait(wait, hint, remaining, config, random=lambda: drawn)


@pytest.mark.parametrize(
    ("delay", "hint", "remaining", "expected"),
    [
        (1.0, 0.0, math.inf, Wait(1.0, "backoff")),
        (0.0, 0.0, 1.0, Wait(0.0, "backoff")),
        (1.0, 2.0, math.inf, Wait(2.0, "retry_after")),
        (2.0, 2.0, math.inf, Wait(2.0, "retry_after")),
        (3.0, 2.0, math.inf, Wait(3.0, "backoff")),
        (1.0, 0.0, 1.0, Stop(RetryStopReason.DEADLINE)),
        (1.0, 5.0, 4.0, Stop(RetryStopReason.RETRY_AFTER_TOO_LONG)),
        (5.0, 4.0, 4.0, Stop(RetryStopReason.DEADLINE)),
        (1.0, 60.0, math.inf, Wait(60.0, "retry_after")),
        (1.0, 60.1, math.inf, Stop(RetryStopReason.RETRY_AFTER_TOO_LONG)),
    ],
)
def test_wait_is_planned(delay, hint, remaining, expected):
    """The longer of backoff and hint is waited for, where time and patience last."""
    assert expected == plan(delay, hint, remaining)


def test_endless_hint_is_too_long_for_any_patience():
    """Nobody waits for ever, with ``max_retry_after=None`` either."""
    expected = Stop(RetryStopReason.RETRY_AFTER_TOO_LONG)

    assert expected == plan(0.0, math.inf, math.inf, longest=None)


@given(
    seconds,
    seconds,
    seconds | st.just(math.inf),
    limits,
    st.floats(0.0, 1.0, exclude_max=True),
)
def test_wait_keeps_within_its_bounds(delay, hint, remaining, longest, drawn):
    """Not below the two delays nor above their sum, it fits into what is left."""
    decision = plan(delay, hint, remaining, longest, drawn)

    if isinstance(decision, Wait):
        assert max(delay, hint) <= decision.delay < remaining
        assert delay + hint >= decision.delay
        most = math.inf if longest is None else max(delay, longest)
        assert most >= decision.delay or most == pytest.approx(decision.delay)
    else:
        assert delay >= remaining or hint >= remaining or hint > longest
