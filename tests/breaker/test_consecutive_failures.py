"""Failures in a row open a circuit, whatever else the window holds."""

import pytest
from chains import URL, session
from circuits import fail
from until import lines_run

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitBreakerListener,
    CircuitBreakerStrategy,
    CircuitState,
)
from aioretry_smithy.testing import ScriptedTransport

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

    def test_none_opens_it_by_its_share_alone(self, clock):
        """The default looks at no row."""
        breaker = CircuitBreaker(failure_rate_threshold=1.0, clock=clock)

        fail(breaker, 1000)

        assert CLOSED is breaker.state

    def test_the_share_opens_it_as_ever(self, clock):
        """Whichever of the two comes first."""
        breaker = CircuitBreaker(
            minimum_request_threshold=4, consecutive_failures=100, clock=clock
        )

        fail(breaker, 4)

        assert OPEN is breaker.state

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

    def test_it_begins_anew_where_it_was_closed_by_hand(self, breaker):
        """As the count does."""
        fail(breaker, 2)
        breaker.enter_state(CLOSED)
        fail(breaker, 2)

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

    def test_listeners_hear_of_it_as_ever(self, clock, diary):
        """The failure that opens it is not counted once more."""
        breaker = CircuitBreaker(consecutive_failures=2, clock=clock, listeners=[diary])

        fail(breaker, 2)

        assert [(0, 1), (OPEN, OPEN), (0, 0)] == diary.entries

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


class TestUpdate:
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

    @pytest.mark.parametrize("value", [0, 2.0, True])
    def test_a_bad_one_changes_nothing(self, breaker, value):
        """As for the others."""
        with pytest.raises(ValueError) as caught:
            breaker.update(consecutive_failures=value, success_threshold=7)

        expected = f"consecutive_failures: {value!r} (expected: an int >= 1, or None)"
        assert expected == str(caught.value)
        assert "success_threshold" not in repr(breaker)

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

    async def test_throttled_answers_do_not_end_the_row(self):
        """They are not counted, if the strategy says so."""
        breaker = CircuitBreaker(consecutive_failures=2)
        decorator = CircuitBreakerClient.new_decorator(
            breaker,
            CircuitBreakerStrategy.on_server_error_status(count_throttling=False),
        )
        busy = 429, {"Retry-After": "1"}, b""

        assert [CLOSED, CLOSED, OPEN] == await self.calls(
            [500, busy, 500], breaker, decorator
        )

    async def test_a_listener_may_close_it_again(self):
        """The row is over then."""

        class Stubborn(CircuitBreakerListener):
            def on_state_changed(self, circuit_breaker, state):
                circuit_breaker.enter_state(CLOSED)

        breaker = CircuitBreaker(consecutive_failures=2, listeners=[Stubborn()])
        decorator = CircuitBreakerClient.new_decorator(breaker)

        assert [CLOSED] * 6 == await self.calls([500] * 6, breaker, decorator)
