"""The circuit breaker, its states entered by hand, and the window that it counts in."""

import asyncio
import dataclasses
import math
import time

import pytest
from circuits import fail
from until import lines_run

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerListener,
    CircuitState,
)
from aioretry_smithy._breaker.state import EventCount, SlidingWindow

CLOSED, OPEN, HALF_OPEN, FORCED_OPEN = CircuitState


@pytest.fixture
def breaker(clock, diary):
    """A closed circuit breaker that opens above half of at least 4 events."""
    return CircuitBreaker(
        "orders", minimum_request_threshold=4, clock=clock, listeners=[diary]
    )


def succeed(breaker, times):
    """Let requests succeed."""
    for _ in range(times):
        breaker.on_success(breaker.try_request())


class TestClosed:
    """While the circuit is closed."""

    def test_it_opens_on_the_failure_that_fills_the_minimum(self, breaker):
        """Judged on every failure, the burst within one update interval too."""
        fail(breaker, 3)
        assert CLOSED is breaker.state

        fail(breaker, 1)

        assert OPEN is breaker.state

    def test_it_stays_closed_at_exactly_the_threshold(self, breaker):
        """Only a rate strictly above the threshold opens the circuit."""
        succeed(breaker, 4)
        fail(breaker, 4)
        assert CLOSED is breaker.state

        fail(breaker, 1)

        assert OPEN is breaker.state

    @pytest.mark.parametrize(
        ("threshold", "successes", "tolerated"),
        [(0.1, 9, 1), (0.3, 7, 3), (0.7, 3, 7), (1 / 3, 20, 10), (1.0, 0, 100)],
    )
    def test_the_threshold_is_exact(self, threshold, successes, tolerated):
        """A rate that equals the threshold is tolerated, whatever floats make of it."""
        breaker = CircuitBreaker(
            failure_rate_threshold=threshold, minimum_request_threshold=4
        )
        succeed(breaker, successes)

        fail(breaker, tolerated)

        assert CLOSED is breaker.state

    @pytest.mark.parametrize(
        ("report", "value", "message"),
        [
            ("on_success", 200, "permit: 200 (expected: a permit of try_request(), "),
            ("on_failure", OSError(5), "permit: OSError(5) (expected: a permit "),
            ("on_ignored", None, "permit: None (expected: a permit of try_request())"),
        ],
    )
    def test_what_is_no_permit_is_refused(self, breaker, diary, report, value, message):
        """The failure in the place of the permit is not counted, and it is told."""
        with pytest.raises(ValueError) as caught:
            getattr(breaker, report)(value)

        assert str(caught.value).startswith(message)
        assert [] == diary.entries


class TestEnterState:
    """States entered by hand."""

    def test_forced_open_refuses_for_ever(self, breaker, clock, diary):
        """No time and no answer leaves it."""
        permit = breaker.try_request()
        breaker.enter_state(FORCED_OPEN)
        clock.now += 1e9

        assert None is breaker.try_request()
        assert None is breaker.retry_in
        breaker.on_success(permit)
        breaker.on_success()
        breaker.on_failure()
        assert FORCED_OPEN is breaker.state
        assert [(FORCED_OPEN, FORCED_OPEN), (0, 0), "rejected"] == diary.entries

    def test_permits_tell_how_often_the_state_was_entered(self, breaker):
        """The generation counts from 0, by one for each state that was entered."""
        permits = [breaker.try_request()]
        for state in (FORCED_OPEN, CLOSED):
            breaker.enter_state(state)
        permits.append(breaker.try_request())

        assert [0, 2] == [permit.generation for permit in permits]

    @pytest.mark.parametrize("state", ["open", None, 1, CircuitState])
    def test_what_is_no_state_is_rejected(self, breaker, state):
        """A string that looks like a state is none."""
        with pytest.raises(ValueError) as caught:
            breaker.enter_state(state)

        assert f"state: {state!r} (expected: a CircuitState)" == str(caught.value)
        assert CLOSED is breaker.state


class TestListeners:
    """Calls of listeners: which, and when."""

    def test_listeners_are_told_in_order(self):
        """Every listener hears an event before any hears the next one."""
        heard = []

        class Named(CircuitBreakerListener):
            def __init__(self, name):
                self.name = name

            def on_state_changed(self, circuit_breaker, state):
                heard.append((self.name, str(state)))

            def on_event_count_updated(self, circuit_breaker, event_count):
                heard.append((self.name, event_count.total))

        breaker = CircuitBreaker(listeners=(Named("a"), Named("b")))

        breaker.enter_state(OPEN)

        assert [("a", "open"), ("b", "open"), ("a", 0), ("b", 0)] == heard

    def test_a_listener_may_use_the_circuit_breaker(self, diary):
        """All listeners hear an event before the next one, which a listener causes."""

        class Optimist(CircuitBreakerListener):
            def on_state_changed(self, circuit_breaker, state):
                if state is OPEN:
                    circuit_breaker.enter_state(HALF_OPEN)
                    circuit_breaker.on_success(circuit_breaker.try_request())
                    circuit_breaker.on_success(circuit_breaker.try_request())

        breaker = CircuitBreaker(
            minimum_request_threshold=1, listeners=[Optimist(), diary]
        )

        fail(breaker, 1)

        assert CLOSED is breaker.state
        assert EventCount(success=1, failure=0) == breaker.event_count
        assert [
            (CLOSED, OPEN),
            (0, 0),
            (CLOSED, HALF_OPEN),
            (CLOSED, CLOSED),
            (1, 0),
        ] == diary.entries

    def test_an_interruption_of_a_listener_silences_nobody(self, diary):
        """An error that is no Exception goes through; the next event is heard again."""

        class Interrupted(CircuitBreakerListener):
            def on_request_rejected(self, circuit_breaker):
                raise KeyboardInterrupt

        breaker = CircuitBreaker(listeners=[diary, Interrupted()])
        breaker.enter_state(FORCED_OPEN)
        with pytest.raises(KeyboardInterrupt):
            breaker.try_request()
        diary.entries.clear()

        breaker.enter_state(CLOSED)

        assert [(CLOSED, CLOSED)] == diary.entries


class TestClock:
    """The clock of a circuit breaker."""

    async def test_it_is_the_running_loops(self):
        """Under virtual time the open window costs no real time."""
        breaker = CircuitBreaker(minimum_request_threshold=1)
        fail(breaker, 1)
        assert None is breaker.try_request()

        await asyncio.sleep(10.0)

        assert breaker.try_request().is_trial

    def test_without_a_loop_it_is_monotonic(self):
        """A circuit breaker works, and passes time, where no event loop runs."""
        breaker = CircuitBreaker(minimum_request_threshold=1, circuit_open_window=0.001)
        fail(breaker, 1)

        deadline = time.monotonic() + 10.0
        while breaker.try_request() is None:
            assert time.monotonic() < deadline

        assert HALF_OPEN is breaker.state


CALL_IT = "; call it: Backoff.of_default()"
NO_TIMES = [0, -1.0, math.nan, math.inf, 10**400, True, "3", None]
NO_SHARES = [0, -0.1, 1.1, math.nan, math.inf, True, "0.5", None]
REFUSED = {
    ("name", "a str that is not empty"): ["", 7, b"orders"],
    ("failure_rate_threshold", "> 0 and <= 1"): NO_SHARES,
    ("minimum_request_threshold", "an int >= 0"): [-1, 2.0, math.nan, True, "9", None],
    ("consecutive_failures", "an int >= 1, or None"): [0, -1, 1.0, True, "1"],
    ("trial_request_interval", "finite and > 0"): NO_TIMES,
    ("success_threshold", "an int >= 1"): [0, -1, 1.0, math.inf, True, "1", None],
    ("circuit_open_window", "finite and > 0, or a Backoff"): NO_TIMES,
    ("circuit_open_window", f"finite and > 0, or a Backoff{CALL_IT}"): [
        Backoff.of_default
    ],
    ("counter_sliding_window", "finite and > 0"): NO_TIMES,
    ("counter_update_interval", "finite and > 0"): NO_TIMES,
    ("counter_sliding_window", "> counter_update_interval, 1.0"): [0.5, 1.0],
    ("listeners", "CircuitBreakerListener objects"): [
        CircuitBreakerListener(),
        [CircuitBreakerListener],
        [print],
        None,
    ],
    ("clock", "a callable that returns seconds"): [7.0],
}
"""By name and what is expected: what is neither."""


class TestArguments:
    """Arguments of a circuit breaker."""

    def test_default_names_are_numbered(self):
        """Circuit breakers without a name can be told apart in logs."""
        first, named, second = CircuitBreaker(), CircuitBreaker("a"), CircuitBreaker()

        prefix, _, number = first.name.rpartition("-")
        assert "circuit-breaker" == prefix
        assert f"circuit-breaker-{int(number) + 1}" == second.name
        assert "a" == named.name

    @pytest.mark.parametrize(
        ("argument", "expected", "value"),
        [(*each, value) for each, values in REFUSED.items() for value in values],
    )
    def test_bad_arguments_are_refused(self, argument, expected, value):
        """Each by its name, with its value."""
        with pytest.raises(ValueError) as caught:
            CircuitBreaker(**{argument: value})

        assert f"{argument}: {value!r} (expected: {expected})" == str(caught.value)


@pytest.fixture
def window():
    """A window of 20 seconds in buckets of one."""
    return SlidingWindow(window=20.0, interval=1.0)


def test_event_count_adds_up():
    """The total and the rate follow from the two numbers."""
    count = EventCount(success=6, failure=2)

    assert 8 == count.total
    assert 0.25 == count.failure_rate
    assert (0, None) == (EventCount(0, 0).total, EventCount(0, 0).failure_rate)


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


def test_a_bucket_is_forgotten_while_a_newer_one_is_open():
    """Also where nobody asks for the count in between."""
    window = SlidingWindow(window=20.0, interval=10.0)
    for now in (0.0, 19.0, 20.5):
        window.add_failure(now)

    assert not window.exceeds(3, 0.5)
