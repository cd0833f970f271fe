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

    def test_it_stays_open_without_requests(self, opened, clock):
        """There is no timer: the state changes with the next request."""
        clock.now += 1000.0

        assert OPEN is opened.state

    def test_answers_are_ignored(self, breaker, clock, diary):
        """Requests sent before the circuit opened tell nothing any more."""
        late = [breaker.try_request() for _ in range(4)]
        fail(breaker, 4)
        diary.entries.clear()

        breaker.on_success(late[0])
        breaker.on_failure(late[1])
        breaker.on_success()
        breaker.on_failure()

        assert OPEN is breaker.state
        assert EventCount(success=0, failure=0) == breaker.event_count
        assert [] == diary.entries
        assert 10.0 == breaker.retry_in


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

    def test_another_trial_waits_for_the_interval(self, breaker, trial, clock):
        """A trial without an answer holds the place for a while, not for ever."""
        clock.now += 2.75
        assert None is breaker.try_request()
        assert 0.25 == breaker.retry_in

        clock.now += 0.25
        second = breaker.try_request()

        assert second.is_trial
        assert None is breaker.try_request()
        assert 3.0 == breaker.retry_in

    def test_an_unanswered_trial_is_no_change_of_state(
        self, breaker, trial, clock, diary
    ):
        """Listeners are not told again that the circuit is half open."""
        clock.now += 3.0
        breaker.try_request()

        assert [] == diary.entries

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

    def test_a_cancelled_trial_gives_its_place_back_at_once(
        self, breaker, trial, clock, diary
    ):
        """Cancellation says nothing about the server and costs no interval."""
        clock.now += 1.0
        breaker.on_ignored(trial)

        assert HALF_OPEN is breaker.state
        assert 0.0 == breaker.retry_in
        assert [] == diary.entries
        second = breaker.try_request()
        assert second.is_trial
        assert None is breaker.try_request()
        assert 3.0 == breaker.retry_in

    def test_a_place_is_given_back_once(self, breaker, trial):
        """A trial that is over takes nobody's place away."""
        breaker.on_ignored(trial)
        breaker.try_request()

        breaker.on_ignored(trial)

        assert None is breaker.try_request()

    def test_an_older_trial_does_not_give_the_place_of_the_newer_back(
        self, breaker, trial, clock
    ):
        """The place belongs to the newest trial."""
        clock.now += 3.0
        breaker.try_request()

        breaker.on_ignored(trial)

        assert None is breaker.try_request()

    @reports
    def test_an_answer_without_a_permit_is_for_the_present_state(
        self, breaker, trial, report, state
    ):
        """A caller that keeps no permits is taken at its word."""
        getattr(breaker, report)()

        assert state is breaker.state


CLOSED, OPEN, HALF_OPEN, FORCED_OPEN = CircuitState


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


def test_a_good_trial_frees_its_place_at_once(ready):
    """No interval follows it; but there is one trial at a time all the same."""
    ready.on_success(ready.try_request())
    assert 0.0 == ready.retry_in

    second = ready.try_request()

    assert second.is_trial
    assert None is ready.try_request()
    assert 3.0 == ready.retry_in


def test_a_permit_counts_once(ready):
    """What is told twice of one trial is one success, and no failure after it."""
    trial = ready.try_request()
    for _ in range(5):
        ready.on_success(trial)
    ready.on_failure(trial)

    assert HALF_OPEN is ready.state
    ready.on_success(ready.try_request())
    assert HALF_OPEN is ready.state


def test_a_permit_that_has_counted_frees_no_other_place(ready):
    """It is given back, though it was told of; the trial under way stays the one."""
    first = ready.try_request()
    ready.on_success(first)
    ready.try_request()

    ready.on_ignored(first)

    assert None is ready.try_request()


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


def test_a_success_without_a_permit_is_one_of_them(ready):
    """It has no place, so the trial under way keeps its own."""
    ready.try_request()
    ready.on_success()
    ready.on_success()

    assert HALF_OPEN is ready.state
    assert None is ready.try_request()
    ready.on_success()
    assert CLOSED is ready.state


def test_one_bad_trial_opens_the_circuit_and_the_count_begins_anew(ready, clock):
    """Two good ones before it do not help, and are not kept."""
    for _ in range(2):
        ready.on_success(ready.try_request())
    ready.on_failure(ready.try_request())
    assert OPEN is ready.state
    clock.now += ready.retry_in

    for _ in range(2):
        ready.on_success(ready.try_request())

    assert HALF_OPEN is ready.state


def test_trials_of_one_generation_let_the_window_grow_once(ready, clock):
    """However many of them fail, and however late."""
    trials = [ready.try_request()]
    for _ in range(3):
        clock.now += 3.0
        trials.append(ready.try_request())

    for trial in trials:
        ready.on_failure(trial)

    assert 16.0 == ready.retry_in


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


@pytest.mark.parametrize("between", [(), (FORCED_OPEN,), (HALF_OPEN,), (OPEN, OPEN)])
def test_by_hand_the_window_neither_grows_nor_shrinks(ready, between):
    """Only trials let it grow, and only a closed circuit takes it back."""
    ready.on_failure(ready.try_request())

    for state in (*between, OPEN):
        ready.enter_state(state)

    assert 16.0 == ready.retry_in


def test_closed_by_hand_it_begins_with_the_first_window(ready):
    """As if trials had closed it."""
    ready.on_failure(ready.try_request())
    ready.enter_state(CLOSED)
    ready.enter_state(OPEN)

    assert 8.0 == ready.retry_in


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
    """It finds the ready as it is after the change that it hears of."""

    class Hasty(CircuitBreakerListener):
        def on_state_changed(self, circuit_breaker, state):
            if state is HALF_OPEN:
                circuit_breaker.on_success()

    ready = CircuitBreaker(success_threshold=2, listeners=[Hasty()], clock=clock)
    ready.enter_state(HALF_OPEN)

    assert HALF_OPEN is ready.state
    ready.on_success()
    assert CLOSED is ready.state
