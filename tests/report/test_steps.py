"""Calls by the time when they began."""

import pytest
from made_lines import call, sent

from aioretry_smithy._report.seen_call import SeenCall
from aioretry_smithy._report.tally import Steps, utc

AGAIN = {"delay": 0.0, "delay_source": "backoff"}


def timeline(*calls):
    steps = Steps()
    for started, values in calls:
        steps.add(SeenCall(values), started, 1.0)
    return steps.answer()


def retried():
    return call(sent(0, 0.1, 503, **AGAIN), sent(0.1))


def test_calls_count_in_the_step_in_which_they_began():
    """Steps without any are left out."""
    times = timeline((0.0, call()), (0.9, call(status=503)), (3.0, retried()))

    assert [
        ("1970-01-01T00:00:00Z", 2, 1, 2, 0, 0.0),
        ("1970-01-01T00:00:03Z", 1, 0, 2, 1, 0.5),
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
    ("span", "step", "said"),
    [
        (0.5, 1, "second"),
        (30, 1, "second"),
        (180, 5, "5 seconds"),
        (3599, 30, "30 seconds"),
        (7199, 60, "minute"),
        (86_400, 1800, "30 minutes"),
        (7 * 86_400, 10_800, "3 hours"),
        (90 * 86_400, 86_400, "day"),
        (800 * 86_400, 604_800, "7 days"),
        (2000 * 86_400, 2_419_200, "28 days"),
    ],
)
def test_steps_go_by_the_span(span, step, said):
    """Seconds for half a minute, days for months: 120 at most."""
    times = timeline(*((span * part / 20, call()) for part in range(21)))

    assert (step, f"by the {said}") == (times.step, times.said)
    assert 21 == sum(moment.calls for moment in times.moments)


def test_steps_are_the_same_in_any_order():
    """A call that makes them grow may be the first of them."""
    calls = [(60.0 * minute, call()) for minute in (1, 1440, 1441, 30)]

    assert timeline(*calls) == timeline(*reversed(calls))


def test_dates_of_all_ages():
    """A clock that is wrong makes long steps, no failure and no memory."""
    times = timeline((-6e10, call()), (2.5e11, call()), (0.0, call()), (0.0, call()))

    assert [1, 2, 1] == [moment.calls for moment in times.moments]
    assert times.moments[-1].started_at.endswith("Z")


def test_moments_in_utc():
    """Parts of a second are left out; what is no date is the nearest one."""
    assert "2026-11-26T12:00:00Z" == utc(1795694400.9)
    assert "0001-01-01T00:00:00Z" == utc(-1e18)
    assert "9999-12-31T23:59:59Z" == utc(1e18)
