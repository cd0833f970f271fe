"""The sliding window of successes and failures."""

import dataclasses

import pytest
from until import lines_run

from aioretry_smithy._breaker.state import EventCount, SlidingWindow


@pytest.fixture
def window():
    """A window of 20 seconds in buckets of one."""
    return SlidingWindow(window=20.0, interval=1.0)


def test_event_count_adds_up():
    """The total and the rate follow from the two numbers."""
    count = EventCount(success=6, failure=2)

    assert 8 == count.total
    assert 0.25 == count.failure_rate


def test_empty_event_count_has_no_failure_rate():
    """Nothing counted is no rate at all, not a rate of zero."""
    count = EventCount(success=0, failure=0)

    assert 0 == count.total
    assert None is count.failure_rate


def test_event_count_is_a_value():
    """Equal numbers are equal counts, and a count that was handed out stays."""
    count = EventCount(success=1, failure=2)

    assert EventCount(1, 2) == count
    with pytest.raises(dataclasses.FrozenInstanceError):
        count.success = 3


def test_an_event_counts_until_it_is_older_than_the_window(window):
    """At exactly the length of the window an event still counts."""
    window.add_success(now=100.0)

    assert EventCount(1, 0) == window.count(now=120.0)
    assert EventCount(0, 0) == window.count(now=120.001)


def test_a_bucket_takes_events_for_its_interval_only(window):
    """At exactly the interval a new bucket begins."""
    window.add_success(now=100.0)
    window.add_failure(now=101.0)

    assert EventCount(0, 1) == window.count(now=121.0)


def test_an_event_from_a_clock_that_went_back_counts(window):
    """A late event is put in the newest bucket, and nothing is forgotten."""
    window.add_success(now=100.0)
    window.add_failure(now=90.0)

    assert EventCount(1, 1) == window.count(now=90.0)
    assert EventCount(1, 1) == window.count(now=120.0)


@pytest.mark.parametrize("step", [0.0, 0.0001, 0.01, 1.0, 19.0, 100.0])
def test_an_event_costs_the_same_however_many_are_counted(step):
    """Counting and judging an event never scans the window."""
    window = SlidingWindow(window=20.0, interval=0.01)
    events = 5000

    def count_all():
        for number in range(events):
            window.add_failure(now=number * step)
            window.count(now=number * step)

    assert lines_run(count_all) <= 40 * events


def test_the_window_keeps_no_more_buckets_than_fit(window):
    """Memory is bounded by the ratio of window and interval, not by traffic."""
    most = 0

    for number in range(10_000):
        window.add_success(now=number * 0.3)
        most = max(most, len(window._buckets))

    assert most <= 21
