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

    def test_without_any_window_before_it_is_the_usual_one(self, clock):
        """Also in the next time of failures: a window of an earlier one is no guide."""
        backoff = Saying(None, 3.0)
        breaker = opened(backoff, clock)
        assert [10.0, 3.0] == windows_of(breaker, clock, 2)
        breaker.enter_state(CLOSED)

        breaker.on_failure(breaker.try_request())

        assert 10.0 == breaker.retry_in

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


class TestUpdate:
    """Settings that change while the circuit breaker works."""

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

    def test_it_goes_on_when_time_does(self, breaker, clock):
        """A success before it, in the seconds of its first failure, ends no row."""
        succeed(breaker, 1)
        for _ in range(2):
            fail(breaker, 1)
            clock.now += 1.5
        assert CLOSED is breaker.state
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
