"""A circuit breaker that is open, and one that tries whether to close."""

import pytest
from circuits import fail

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerListener,
    CircuitState,
)
from aioretry_smithy._breaker.state import EventCount

CLOSED, OPEN, HALF_OPEN, FORCED_OPEN = CircuitState

reports = pytest.mark.parametrize(
    ("report", "state"), [("on_success", CLOSED), ("on_failure", OPEN)]
)


@pytest.fixture
def breaker(clock, diary):
    """A closed circuit breaker that opens above half of at least 4 events."""
    return CircuitBreaker(
        "orders", minimum_request_threshold=4, clock=clock, listeners=[diary]
    )


class TestOpen:
    """While the circuit is open."""

    def test_requests_are_refused_until_the_open_window_has_passed(
        self, opened, clock, diary
    ):
        """The first request at the end of the open window is the trial."""
        assert None is opened.try_request()
        assert 10.0 == opened.retry_in

        clock.now += 9.75
        assert None is opened.try_request()
        assert 0.25 == opened.retry_in

        clock.now += 0.25
        assert 0.0 == opened.retry_in
        assert opened.try_request().is_trial
        assert HALF_OPEN is opened.state
        assert ["rejected", "rejected", (HALF_OPEN, HALF_OPEN)] == diary.entries


class TestHalfOpen:
    """While the circuit is half open."""

    @pytest.fixture
    def trial(self, opened, clock, diary):
        """The permit of the trial."""
        clock.now += 10.0
        permit = opened.try_request()
        diary.entries.clear()
        return permit

    def test_the_success_of_the_trial_closes_it(self, breaker, trial, diary):
        """A closed circuit begins with an empty count."""
        breaker.on_success(trial)

        assert CLOSED is breaker.state
        assert EventCount(success=0, failure=0) == breaker.event_count
        assert [(CLOSED, CLOSED)] == diary.entries

    def test_the_failure_of_the_trial_opens_it(self, breaker, trial, diary, clock):
        """The whole open window passes before the next trial."""
        clock.now += 2.0
        breaker.on_failure(trial)

        assert OPEN is breaker.state
        assert 10.0 == breaker.retry_in
        assert [(OPEN, OPEN)] == diary.entries

    @reports
    def test_a_late_answer_of_an_older_trial_decides(
        self, breaker, trial, clock, report, state
    ):
        """A server slower than the trial interval can still close the circuit."""
        clock.now += 3.0
        newer = breaker.try_request()

        getattr(breaker, report)(trial)

        assert state is breaker.state
        breaker.on_failure(newer)
        breaker.on_success(newer)
        assert state is breaker.state
        assert EventCount(success=0, failure=0) == breaker.event_count

    def test_answers_from_before_are_ignored(self, breaker, clock):
        """A request sent while the circuit was closed decides nothing now."""
        late = breaker.try_request()
        fail(breaker, 4)
        clock.now += 10.0
        trial = breaker.try_request()

        breaker.on_success(late)
        assert HALF_OPEN is breaker.state
        breaker.on_failure(late)
        assert HALF_OPEN is breaker.state
        breaker.on_ignored(late)
        assert None is breaker.try_request()

        breaker.on_success(trial)
        breaker.on_failure(late)
        assert EventCount(success=0, failure=0) == breaker.event_count

    def test_answers_of_an_earlier_half_open_time_are_ignored(
        self, breaker, trial, clock
    ):
        """Two trials, one failed; the other's success comes after it is over."""
        clock.now += 3.0
        slow = breaker.try_request()
        breaker.on_failure(trial)
        clock.now += 10.0
        breaker.try_request()

        breaker.on_success(slow)
        breaker.on_ignored(slow)

        assert HALF_OPEN is breaker.state
        assert None is breaker.try_request()


@pytest.fixture
def ready(clock):
    """A circuit breaker that closes after three trials; its window has passed."""
    ready = CircuitBreaker(
        "orders",
        minimum_request_threshold=1,
        success_threshold=3,
        circuit_open_window=Backoff.exponential(8.0, 20.0),
        clock=clock,
    )
    ready.on_failure(ready.try_request())
    clock.now += 8.0
    return ready


def test_the_circuit_closes_after_so_many_good_trials(ready):
    """Not before."""
    states = []
    for _ in range(3):
        ready.on_success(ready.try_request())
        states.append(ready.state)

    assert [HALF_OPEN, HALF_OPEN, CLOSED] == states


def test_a_permit_counts_once(ready):
    """What is told twice of one trial is one success, and no failure after it."""
    trial = ready.try_request()
    for _ in range(5):
        ready.on_success(trial)
    ready.on_failure(trial)

    assert HALF_OPEN is ready.state
    ready.on_success(ready.try_request())
    assert HALF_OPEN is ready.state


def test_a_newer_trial_keeps_its_place_when_an_older_one_ends(ready, clock):
    """The older one counts; no third one is sent beside the newer."""
    older = ready.try_request()
    clock.now += 3.0
    newer = ready.try_request()
    clock.now += 1.0

    ready.on_success(older)

    assert None is ready.try_request()
    assert 2.0 == ready.retry_in
    ready.on_success(newer)
    ready.on_success(ready.try_request())
    assert CLOSED is ready.state


def test_the_window_grows_while_trials_fail_and_is_back_when_the_circuit_closes(
    ready, clock
):
    """The backoff's limit holds for it too."""
    windows = []
    for _ in range(3):
        ready.on_failure(ready.try_request())
        windows.append(ready.retry_in)
        clock.now += ready.retry_in
    for _ in range(3):
        ready.on_success(ready.try_request())
    ready.on_failure(ready.try_request())
    windows.append(ready.retry_in)

    assert [16.0, 20.0, 20.0, 8.0] == windows


def test_a_circuit_opened_for_trials_by_hand_counts_them_too(clock):
    """The first failure gives the first window, for there was none before."""
    ready = CircuitBreaker(
        circuit_open_window=Backoff.exponential(8.0, 20.0),
        success_threshold=2,
        clock=clock,
    )
    ready.enter_state(HALF_OPEN)
    ready.on_success(ready.try_request())
    assert HALF_OPEN is ready.state

    ready.on_failure(ready.try_request())

    assert 8.0 == ready.retry_in


def test_a_listener_may_answer_for_a_trial(clock):
    """It finds the circuit breaker as it is after the change that it hears of."""

    class Hasty(CircuitBreakerListener):
        def on_state_changed(self, circuit_breaker, state):
            if state is HALF_OPEN:
                circuit_breaker.on_success()

    ready = CircuitBreaker(success_threshold=2, listeners=[Hasty()], clock=clock)
    ready.enter_state(HALF_OPEN)

    assert HALF_OPEN is ready.state
    ready.on_success()
    assert CLOSED is ready.state
