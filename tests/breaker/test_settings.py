"""The settings of a circuit breaker: rows, growing windows, changes."""

import logging
import math

import pytest
from chains import URL, bad_argument, session
from circuits import fail
from until import lines_run

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitBreakerListener,
    CircuitState,
)
from aioretry_smithy._breaker.state import EventCount
from aioretry_smithy.testing import ScriptedTransport

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

    def test_a_backoff_is_asked_once_for_each_opening(self, clock):
        """From 1, as for attempts; not by those who only look."""
        backoff = Saying(1.0, 2.0, 4.0)

        assert [1.0, 2.0, 4.0] == windows_of(opened(backoff, clock), clock, 3)
        assert [1, 2, 3] == backoff.asked

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

    def test_listeners_hear_nothing(self, clock):
        """No event has happened."""
        heard = []

        class Ears(CircuitBreakerListener):
            def on_event_count_updated(self, circuit_breaker, event_count):
                heard.append(event_count)

        breaker = CircuitBreaker(listeners=[Ears()], clock=clock)

        breaker.update(counter_sliding_window=5.0, minimum_request_threshold=0)

        assert [] == heard


CLOSED, OPEN, HALF_OPEN, FORCED_OPEN = CircuitState


@pytest.fixture
def breaker(clock):
    """A circuit breaker that three failures in a row open, and no share of them."""
    return CircuitBreaker(
        "orders", failure_rate_threshold=1.0, consecutive_failures=3, clock=clock
    )


def succeed(breaker, times):
    for _ in range(times):
        breaker.on_success(breaker.try_request())


class TestRow:
    """When the failures in a row open the circuit."""

    def test_the_last_of_the_row_opens_it(self, breaker):
        """However many successes came before."""
        succeed(breaker, 1000)
        fail(breaker, 2)
        assert CLOSED is breaker.state

        fail(breaker, 1)

        assert OPEN is breaker.state

    def test_a_success_begins_the_row_anew(self, breaker):
        """Two of three failed, for ever."""
        for _ in range(20):
            fail(breaker, 2)
            succeed(breaker, 1)

        assert CLOSED is breaker.state

    @pytest.mark.parametrize("seconds", [0.5, 19.0, 3600.0])
    def test_the_window_may_have_forgotten_the_first(self, breaker, clock, seconds):
        """A row has no age."""
        for _ in range(3):
            assert CLOSED is breaker.state
            fail(breaker, 1)
            clock.now += seconds

        assert OPEN is breaker.state

    @pytest.mark.parametrize("seconds", [0.5, 19.0, 3600.0])
    def test_the_window_may_have_forgotten_the_success(self, breaker, clock, seconds):
        """It ends the row for all that."""
        fail(breaker, 2)
        succeed(breaker, 1)
        clock.now += seconds

        fail(breaker, 2)

        assert CLOSED is breaker.state
        fail(breaker, 1)
        assert OPEN is breaker.state

    def test_what_is_ignored_does_not_end_the_row(self, breaker):
        """A cancelled request says nothing."""
        fail(breaker, 2)
        breaker.on_ignored(breaker.try_request())
        fail(breaker, 1)

        assert OPEN is breaker.state

    def test_it_begins_anew_where_the_circuit_has_closed(self, breaker, clock):
        """Once each time."""
        for _ in range(2):
            fail(breaker, 2)
            assert CLOSED is breaker.state
            fail(breaker, 1)
            assert OPEN is breaker.state
            clock.now += 10.0
            succeed(breaker, 1)
            assert CLOSED is breaker.state

    def test_a_success_from_before_it_opened_says_nothing(self, breaker, clock):
        """Its permit is of an earlier state."""
        before = breaker.try_request()
        fail(breaker, 3)
        clock.now += 10.0
        succeed(breaker, 1)
        fail(breaker, 2)
        breaker.on_success(before)
        fail(breaker, 1)

        assert OPEN is breaker.state

    def test_a_clock_that_goes_back_counts_too(self, breaker, clock):
        """What is late is in order of its report."""
        fail(breaker, 2)
        clock.now -= 100.0
        succeed(breaker, 1)
        fail(breaker, 2)
        assert CLOSED is breaker.state
        fail(breaker, 1)

        assert OPEN is breaker.state

    @pytest.mark.parametrize("step", [0.0, 0.01, 1.0, 100.0])
    def test_a_failure_costs_the_same_in_any_row(self, clock, step):
        """Neither the window nor the row is gone through."""
        breaker = CircuitBreaker(
            consecutive_failures=10**9, failure_rate_threshold=1.0, clock=clock
        )

        def fail_often():
            for _ in range(2000):
                fail(breaker, 1)
                clock.now += step

        assert lines_run(fail_often) <= 60 * 2000


class Own(CircuitBreaker):
    """A user's own, which counts what it is told."""

    told = 0

    def on_failure(self, permit=None):
        self.told += 1
        super().on_failure(permit)


class TestUpdateOfRow:
    """The number changes while the circuit breaker works."""

    def test_the_row_so_far_counts(self, breaker):
        """From the next failure on."""
        fail(breaker, 2)
        breaker.update(consecutive_failures=2)
        assert CLOSED is breaker.state
        fail(breaker, 1)

        assert OPEN is breaker.state

    def test_a_row_begins_where_it_is_switched_on(self, clock):
        """What has failed before was not counted as one."""
        breaker = CircuitBreaker(failure_rate_threshold=1.0, clock=clock)
        fail(breaker, 4)
        breaker.update(consecutive_failures=3)
        fail(breaker, 2)
        assert CLOSED is breaker.state
        fail(breaker, 1)

        assert OPEN is breaker.state

    def test_none_switches_it_off(self, breaker):
        """For good."""
        breaker.update(consecutive_failures=None)
        fail(breaker, 100)

        assert CLOSED is breaker.state

    def test_it_is_shown_where_it_is_set(self, breaker):
        """Whoever does not ask for it sees the text that there was before."""
        assert ", consecutive_failures=3, " in repr(breaker)
        breaker.update(consecutive_failures=None)
        assert "consecutive_failures" not in repr(breaker)


class TestClient:
    """Outcomes of requests."""

    async def calls(self, script, breaker, decorator):
        """Make a call for each answer; return the state after each."""
        states = []
        chain = session(ScriptedTransport(script), decorator)
        async with chain as client:
            for _ in script:
                async with client.get(URL):
                    states.append(breaker.state)
        return states

    async def test_failures_of_requests_open_it(self):
        """A subclass hears of each."""
        breaker = Own(consecutive_failures=3)
        decorator = CircuitBreakerClient.new_decorator(breaker)

        states = await self.calls([500, 200, 500, 503, 502], breaker, decorator)

        assert [CLOSED, CLOSED, CLOSED, CLOSED, OPEN] == states
        assert 4 == breaker.told

    async def test_a_listener_may_close_it_again(self):
        """The row is over then."""

        class Stubborn(CircuitBreakerListener):
            def on_state_changed(self, circuit_breaker, state):
                circuit_breaker.enter_state(CLOSED)

        breaker = CircuitBreaker(consecutive_failures=2, listeners=[Stubborn()])
        decorator = CircuitBreakerClient.new_decorator(breaker)

        assert [CLOSED] * 6 == await self.calls([500] * 6, breaker, decorator)
