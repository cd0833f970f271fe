"""Several trials before a circuit closes."""

import pytest

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerListener,
    CircuitState,
)

CLOSED, OPEN, HALF_OPEN, FORCED_OPEN = CircuitState


@pytest.fixture
def breaker(clock):
    """A circuit breaker that closes after three trials; its window has passed."""
    breaker = CircuitBreaker(
        "orders",
        minimum_request_threshold=1,
        success_threshold=3,
        circuit_open_window=Backoff.exponential(8.0, 20.0),
        clock=clock,
    )
    breaker.on_failure(breaker.try_request())
    clock.now += 8.0
    return breaker


def test_the_circuit_closes_after_so_many_good_trials(breaker):
    """Not before."""
    states = []
    for _ in range(3):
        breaker.on_success(breaker.try_request())
        states.append(breaker.state)

    assert [HALF_OPEN, HALF_OPEN, CLOSED] == states


def test_a_good_trial_frees_its_place_at_once(breaker):
    """No interval follows it; but there is one trial at a time all the same."""
    breaker.on_success(breaker.try_request())
    assert 0.0 == breaker.retry_in

    second = breaker.try_request()

    assert second.is_trial
    assert None is breaker.try_request()
    assert 3.0 == breaker.retry_in


def test_a_permit_counts_once(breaker):
    """What is told twice of one trial is one success, and no failure after it."""
    trial = breaker.try_request()
    for _ in range(5):
        breaker.on_success(trial)
    breaker.on_failure(trial)

    assert HALF_OPEN is breaker.state
    breaker.on_success(breaker.try_request())
    assert HALF_OPEN is breaker.state


def test_a_permit_that_has_counted_frees_no_other_place(breaker):
    """It is given back, though it was told of; the trial under way stays the one."""
    first = breaker.try_request()
    breaker.on_success(first)
    breaker.try_request()

    breaker.on_ignored(first)

    assert None is breaker.try_request()


def test_a_newer_trial_keeps_its_place_when_an_older_one_ends(breaker, clock):
    """The older one counts; no third one is sent beside the newer."""
    older = breaker.try_request()
    clock.now += 3.0
    newer = breaker.try_request()
    clock.now += 1.0

    breaker.on_success(older)

    assert None is breaker.try_request()
    assert 2.0 == breaker.retry_in
    breaker.on_success(newer)
    breaker.on_success(breaker.try_request())
    assert CLOSED is breaker.state


def test_a_success_without_a_permit_is_one_of_them(breaker):
    """It has no place, so the trial under way keeps its own."""
    breaker.try_request()
    breaker.on_success()
    breaker.on_success()

    assert HALF_OPEN is breaker.state
    assert None is breaker.try_request()
    breaker.on_success()
    assert CLOSED is breaker.state


def test_one_bad_trial_opens_the_circuit_and_the_count_begins_anew(breaker, clock):
    """Two good ones before it do not help, and are not kept."""
    for _ in range(2):
        breaker.on_success(breaker.try_request())
    breaker.on_failure(breaker.try_request())
    assert OPEN is breaker.state
    clock.now += breaker.retry_in

    for _ in range(2):
        breaker.on_success(breaker.try_request())

    assert HALF_OPEN is breaker.state


def test_an_ignored_trial_is_no_success(breaker):
    """It gives its place back, and another one has to succeed in its place."""
    for _ in range(5):
        breaker.on_ignored(breaker.try_request())
    assert HALF_OPEN is breaker.state

    for _ in range(3):
        breaker.on_success(breaker.try_request())

    assert CLOSED is breaker.state


def test_trials_of_one_generation_let_the_window_grow_once(breaker, clock):
    """However many of them fail, and however late."""
    trials = [breaker.try_request()]
    for _ in range(3):
        clock.now += 3.0
        trials.append(breaker.try_request())

    for trial in trials:
        breaker.on_failure(trial)

    assert 16.0 == breaker.retry_in


def test_a_bad_trial_after_good_ones_lets_the_window_grow(breaker):
    """The generation has failed as a whole."""
    breaker.on_success(breaker.try_request())
    breaker.on_failure(breaker.try_request())

    assert 16.0 == breaker.retry_in


def test_the_window_grows_while_trials_fail_and_is_back_when_the_circuit_closes(
    breaker, clock
):
    """The backoff's limit holds for it too."""
    windows = []
    for _ in range(3):
        breaker.on_failure(breaker.try_request())
        windows.append(breaker.retry_in)
        clock.now += breaker.retry_in
    for _ in range(3):
        breaker.on_success(breaker.try_request())
    breaker.on_failure(breaker.try_request())
    windows.append(breaker.retry_in)

    assert [16.0, 20.0, 20.0, 8.0] == windows


@pytest.mark.parametrize("between", [(), (FORCED_OPEN,), (HALF_OPEN,), (OPEN, OPEN)])
def test_by_hand_the_window_neither_grows_nor_shrinks(breaker, between):
    """Only trials let it grow, and only a closed circuit takes it back."""
    breaker.on_failure(breaker.try_request())

    for state in (*between, OPEN):
        breaker.enter_state(state)

    assert 16.0 == breaker.retry_in


def test_closed_by_hand_it_begins_with_the_first_window(breaker):
    """As if trials had closed it."""
    breaker.on_failure(breaker.try_request())
    breaker.enter_state(CLOSED)
    breaker.enter_state(OPEN)

    assert 8.0 == breaker.retry_in


def test_a_circuit_opened_for_trials_by_hand_counts_them_too(clock):
    """The first failure gives the first window, for there was none before."""
    breaker = CircuitBreaker(
        circuit_open_window=Backoff.exponential(8.0, 20.0),
        success_threshold=2,
        clock=clock,
    )
    breaker.enter_state(HALF_OPEN)
    breaker.on_success(breaker.try_request())
    assert HALF_OPEN is breaker.state

    breaker.on_failure(breaker.try_request())

    assert 8.0 == breaker.retry_in


def test_a_listener_may_answer_for_a_trial(clock):
    """It finds the breaker as it is after the change that it hears of."""

    class Hasty(CircuitBreakerListener):
        def on_state_changed(self, circuit_breaker, state):
            if state is HALF_OPEN:
                circuit_breaker.on_success()

    breaker = CircuitBreaker(success_threshold=2, listeners=[Hasty()], clock=clock)
    breaker.enter_state(HALF_OPEN)

    assert HALF_OPEN is breaker.state
    breaker.on_success()
    assert CLOSED is breaker.state
