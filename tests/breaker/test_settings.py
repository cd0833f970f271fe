"""The settings of a circuit breaker: windows that grow, changes while it works."""

import logging
import math

import pytest
from chains import bad_argument

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerListener,
    CircuitState,
)
from aioretry_smithy._breaker.state import EventCount

CLOSED, OPEN, HALF_OPEN, FORCED_OPEN = CircuitState


class Saying(Backoff):
    """A backoff that says what is in a list, or raises it."""

    def __init__(self, *said):
        self.said = said
        self.asked = []

    def next_delay(self, num_attempts_so_far):
        self.asked.append(num_attempts_so_far)
        answer = self.said[min(num_attempts_so_far, len(self.said)) - 1]
        if isinstance(answer, Exception):
            raise answer
        return answer


def opened(window, clock, **settings):
    """Make a circuit breaker that has just opened for the first time."""
    breaker = CircuitBreaker(
        "orders",
        minimum_request_threshold=1,
        circuit_open_window=window,
        clock=clock,
        **settings,
    )
    breaker.on_failure(breaker.try_request())
    return breaker


def windows_of(breaker, clock, number):
    """Return the windows of that many openings in a row."""
    windows = [breaker.retry_in]
    while len(windows) < number:
        clock.now += breaker.retry_in
        breaker.on_failure(breaker.try_request())
        windows.append(breaker.retry_in)
    return windows


class TestOpenWindow:
    """The seconds for which a circuit stays open."""

    def test_a_number_is_always_the_same(self, clock):
        """However often trials fail."""
        assert [5.0] * 4 == windows_of(opened(5.0, clock), clock, 4)

    def test_a_backoff_is_asked_once_for_each_opening(self, clock):
        """From 1, as for attempts; not by those who only look."""
        backoff = Saying(1.0, 2.0, 4.0)

        assert [1.0, 2.0, 4.0] == windows_of(opened(backoff, clock), clock, 3)
        assert [1, 2, 3] == backoff.asked

    def test_jitter_is_drawn_for_each_window(self, clock):
        """So processes that have opened together try apart."""
        dice = iter([0.0, 0.5, 1.0])
        backoff = Backoff.fixed(10.0).with_jitter(0.5, random=lambda: next(dice))

        assert [5.0, 10.0, 15.0] == windows_of(opened(backoff, clock), clock, 3)

    def test_none_keeps_the_last_window(self, clock):
        """As of a backoff with an end."""
        backoff = Saying(1.0, 4.0, None)

        assert [1.0, 4.0, 4.0, 4.0] == windows_of(opened(backoff, clock), clock, 4)

    def test_without_any_window_before_it_is_the_usual_one(self, clock):
        """Also in the next time of failures: a window of an earlier one is no guide."""
        backoff = Saying(None, 3.0)
        breaker = opened(backoff, clock)
        assert [10.0, 3.0] == windows_of(breaker, clock, 2)
        breaker.enter_state(CLOSED)

        breaker.on_failure(breaker.try_request())

        assert 10.0 == breaker.retry_in

    def test_no_window_lets_the_next_request_be_a_trial(self, clock):
        """A backoff may say 0, though a number may not be."""
        breaker = opened(Backoff.without_delay(), clock)

        assert OPEN is breaker.state
        assert 0.0 == breaker.retry_in
        assert breaker.try_request().is_trial

    @pytest.mark.parametrize(
        "nonsense",
        [RuntimeError("tired"), -1.0, math.nan, math.inf, 10**400, "4", True],
        ids=repr,
    )
    def test_a_backoff_that_fails_keeps_the_last_window(self, clock, caplog, nonsense):
        """It is logged, and whoever reported the failure hears nothing."""
        backoff = Saying(4.0, nonsense)

        with caplog.at_level(logging.WARNING, "aioretry_smithy"):
            windows = windows_of(opened(backoff, clock), clock, 2)

        assert [4.0, 4.0] == windows
        (record,) = caplog.records
        assert record.getMessage() == (
            f"circuit breaker 'orders': its open window stays: {backoff!r} raised"
        )
        assert record.exc_info is not None

    def test_a_backoff_may_use_the_circuit_breaker(self, clock):
        """What it changes is not lost: the circuit opens after that."""

        class Meddling(Backoff):
            def next_delay(self, num_attempts_so_far):
                if breaker.state is CLOSED:
                    breaker.enter_state(HALF_OPEN)
                return 2.0

        breaker = CircuitBreaker(
            minimum_request_threshold=1, circuit_open_window=Meddling(), clock=clock
        )
        before = breaker.try_request()
        breaker.on_failure(before)

        assert OPEN is breaker.state
        assert 2.0 == breaker.retry_in
        breaker.on_success(before)
        assert OPEN is breaker.state

    def test_several_trials_are_shown_and_one_is_not(self):
        """Whoever does not ask for several sees the text that there was before."""
        assert "success_threshold" not in repr(CircuitBreaker())
        assert ", success_threshold=2, " in repr(CircuitBreaker(success_threshold=2))

    def test_it_is_shown_as_it_was_made(self):
        """The growth can be read off."""
        backoff = Backoff.exponential(10.0, 120.0).with_jitter(0.2)

        assert f"circuit_open_window={backoff!r}, " in repr(
            CircuitBreaker(circuit_open_window=backoff)
        )


class TestUpdate:
    """Settings that change while the circuit breaker works."""

    def test_an_open_circuit_keeps_its_time(self, clock):
        """The next opening has the new one."""
        breaker = opened(10.0, clock)

        breaker.update(circuit_open_window=2.0)

        assert [10.0, 2.0] == windows_of(breaker, clock, 2)

    def test_a_backoff_in_place_of_a_number_goes_on_counting(self, clock):
        """Trials have failed, whatever the window was."""
        breaker = opened(10.0, clock)
        windows_of(breaker, clock, 2)

        breaker.update(circuit_open_window=Backoff.exponential(1.0, 100.0))

        assert [10.0, 4.0] == windows_of(breaker, clock, 2)

    def test_a_trial_under_way_keeps_its_interval(self, clock):
        """The next trial has the new one."""
        breaker = opened(10.0, clock)
        clock.now += 10.0
        breaker.try_request()

        breaker.update(trial_request_interval=7.0)
        assert 3.0 == breaker.retry_in
        clock.now += 3.0
        breaker.try_request()

        assert 7.0 == breaker.retry_in

    def test_fewer_trials_are_enough_from_the_next_one_on(self, clock):
        """Not from those that had been before, though they would be enough now."""
        breaker = opened(10.0, clock, success_threshold=4)
        clock.now += 10.0
        for _ in range(2):
            breaker.on_success(breaker.try_request())

        breaker.update(success_threshold=1)

        assert HALF_OPEN is breaker.state
        breaker.on_success(breaker.try_request())
        assert CLOSED is breaker.state

    def test_the_next_failure_is_judged_by_the_new_threshold(self, clock):
        """What was counted stays, and opens nothing by itself."""
        breaker = CircuitBreaker(minimum_request_threshold=10, clock=clock)
        for _ in range(3):
            breaker.on_failure(breaker.try_request())

        breaker.update(minimum_request_threshold=2)

        assert CLOSED is breaker.state
        assert EventCount(success=0, failure=3) == breaker.event_count
        breaker.on_failure(breaker.try_request())
        assert OPEN is breaker.state

    def test_the_next_failure_is_judged_by_the_new_rate(self, clock):
        """Half is tolerated before, and not after."""
        breaker = CircuitBreaker(minimum_request_threshold=1, clock=clock)
        for _ in range(3):
            breaker.on_success(breaker.try_request())
        breaker.on_failure(breaker.try_request())

        breaker.update(failure_rate_threshold=0.3)
        breaker.on_failure(breaker.try_request())

        assert OPEN is breaker.state

    def test_a_shorter_window_forgets_what_is_older(self, clock):
        """A longer one keeps what is there for longer."""
        breaker = CircuitBreaker(counter_sliding_window=20.0, clock=clock)
        for _ in range(3):
            breaker.on_success(breaker.try_request())
            clock.now += 5.0

        breaker.update(counter_sliding_window=7.0)
        breaker.on_failure(breaker.try_request())

        assert EventCount(success=1, failure=1) == breaker.event_count
        breaker.update(counter_sliding_window=100.0)
        clock.now += 90.0
        assert EventCount(success=1, failure=1) == breaker.event_count

    def test_events_are_put_together_by_the_new_interval(self, clock):
        """The bucket that is open is closed by it, too."""
        breaker = CircuitBreaker(counter_update_interval=10.0, clock=clock)
        breaker.on_success(breaker.try_request())
        clock.now += 5.0

        breaker.update(counter_update_interval=1.0)
        breaker.on_success(breaker.try_request())
        clock.now += 16.0

        assert EventCount(success=1, failure=0) == breaker.event_count

    def test_a_circuit_that_closes_later_counts_by_the_new_window(self, clock):
        """It was open while the settings changed."""
        breaker = opened(1.0, clock)
        breaker.update(counter_sliding_window=50.0)
        clock.now += 1.0
        breaker.on_success(breaker.try_request())

        breaker.on_success(breaker.try_request())
        clock.now += 45.0

        assert EventCount(success=1, failure=0) == breaker.event_count

    def test_they_can_be_read_off(self):
        """Those that were not named are as before."""
        breaker = CircuitBreaker("orders", counter_sliding_window=30.0)

        breaker.update(success_threshold=2, circuit_open_window=5.0)

        changed = CircuitBreaker(
            "orders",
            counter_sliding_window=30.0,
            success_threshold=2,
            circuit_open_window=5.0,
        )
        assert repr(changed) == repr(breaker)

    @pytest.mark.parametrize(
        ("changes", "name", "value", "expected"),
        [
            ({"success_threshold": 0}, "success_threshold", 0, "an int >= 1"),
            (
                {"counter_sliding_window": 0.5},
                "counter_sliding_window",
                0.5,
                "> counter_update_interval, 1.0",
            ),
            (
                {"open_window": 5.0},
                "argument",
                "open_window",
                "a setting that may change, perhaps 'circuit_open_window'",
            ),
            ({"listeners": []}, "argument", "listeners", "a setting that may change"),
            ({"clock": None}, "argument", "clock", "a setting that may change"),
            ({"name": "new"}, "argument", "name", "a setting that may change"),
        ],
    )
    def test_all_or_none_are_changed(self, changes, name, value, expected):
        """One that is wrong leaves the others as they were too."""
        breaker = CircuitBreaker("orders")
        before = repr(breaker)

        with bad_argument(name, value, expected):
            breaker.update(failure_rate_threshold=0.9, **changes)

        assert before == repr(breaker)

    def test_nothing_is_allowed(self):
        """As when all that is to be changed comes from a file."""
        breaker = CircuitBreaker("orders")
        before = repr(breaker)

        breaker.update()

        assert before == repr(breaker)

    def test_listeners_hear_nothing(self, clock):
        """No event has happened."""
        heard = []

        class Ears(CircuitBreakerListener):
            def on_event_count_updated(self, circuit_breaker, event_count):
                heard.append(event_count)

        breaker = CircuitBreaker(listeners=[Ears()], clock=clock)

        breaker.update(counter_sliding_window=5.0, minimum_request_threshold=0)

        assert [] == heard
