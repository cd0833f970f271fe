"""Calls by the time when they began."""

from __future__ import annotations

import pytest
from made_lines import call, sent

from aioretry_smithy._report.minutes import Minutes, utc
from aioretry_smithy._report.seen_call import SeenCall

AGAIN = {"delay": 0.0, "delay_source": "backoff"}


def timeline(*calls):
    minutes = Minutes()
    for started, values in calls:
        minutes.add(SeenCall(values), started, 1.0)
    return minutes.answer()


def retried():
    return call(sent(0, 0.1, 503, **AGAIN), sent(0.1))


def test_calls_count_in_the_minute_in_which_they_began():
    """Minutes without any are left out."""
    times = timeline((0.0, call()), (59.9, call(status=503)), (180.0, retried()))

    assert (60, None, ()) == (times.step, times.said, times.storms)
    assert [
        ("1970-01-01T00:00:00Z", 2, 1, 2, 0, 0.0),
        ("1970-01-01T00:03:00Z", 1, 0, 2, 1, 0.5),
    ] == [
        (
            *(each.started_at, each.calls, each.failures, each.attempts),
            *(each.retries, each.retry_share),
        )
        for each in times.moments
    ]
    assert 0.1 == times.moments[0].max


def test_calls_without_a_duration_have_no_quantile():
    """Nothing is known of it."""
    (moment,) = timeline((0.0, call(took=None))).moments

    assert (None, None) == (moment.p99, moment.max)


@pytest.mark.parametrize(
    ("days", "step"), [(0.9, 60), (1.5, 120), (9, 600), (50, 3600)]
)
def test_steps_grow(days, step):
    """There are 1,440 at most, and that they are longer is said."""
    calls = [(day * 86400 * days / 20, call()) for day in range(21)]
    times = timeline(*calls)

    assert step == times.step
    assert 21 == sum(moment.calls for moment in times.moments)
    assert (f"a step is {step // 60} minutes long" if step > 60 else None) == times.said


def test_a_call_that_makes_steps_grow_may_share_the_last_one():
    """It began a minute after another one, in what is one step now."""
    times = timeline(*((60.0 * minute, call()) for minute in (1, 1440, 1441)))

    assert [1, 2] == [moment.calls for moment in times.moments]


def test_dates_of_all_ages():
    """A clock that is wrong makes long steps, no failure and no memory."""
    times = timeline((-6e10, call()), (2.5e11, call()), (0.0, call()), (0.0, call()))

    assert [1, 2, 1] == [moment.calls for moment in times.moments]
    assert times.moments[-1].started_at.endswith("Z")


def test_storms_are_said_in_words():
    """More than 20 % of the requests were retries, for as long as that lasted."""
    calm = [(minute * 60.0, call()) for minute in range(8) for _ in range(50)]
    storm = [(60.0 * minute, retried()) for minute in (2, 3, 6) for _ in range(20)]
    first, second = timeline(*calm, *storm).storms

    assert ("1970-01-01T00:02:00Z", "1970-01-01T00:04:00Z") == (
        first.started_at,
        first.ended_at,
    )
    assert (180, 40) == (first.attempts, first.retries)
    assert first.said == (
        "retry storm from 1970-01-01T00:02:00Z to 1970-01-01T00:04:00Z:"
        " 22 % of the requests were retries"
    )
    assert "1970-01-01T00:06:00Z" == second.started_at


def test_a_storm_may_go_on_at_the_end_or_leave_a_gap():
    """Minutes without calls part two storms."""
    calls = [(60.0 * minute, retried()) for minute in (0, 5) for _ in range(20)]

    assert 2 == len(timeline(*calls).storms)


def test_few_retries_are_no_storm():
    """One of two calls is chance."""
    assert () == timeline((0.0, retried()), (1.0, retried())).storms


def test_moments_in_utc():
    """Parts of a second are left out; what is no date is the nearest one."""
    assert "2026-11-26T12:00:00Z" == utc(1795694400.9)
    assert "0001-01-01T00:00:00Z" == utc(-1e18)
    assert "9999-12-31T23:59:59Z" == utc(1e18)
