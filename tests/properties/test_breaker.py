"""The circuit breaker against a naive one: a list of events and plain ifs."""

import hypothesis
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
)

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerListener,
    CircuitState,
    EventCount,
)

CLOSED, OPEN, HALF_OPEN, FORCED_OPEN = CircuitState
TICK = 1 / 8
"""All times are multiples of it, so that arithmetic is exact and edges are met."""


class NaiveBreaker:
    """A circuit breaker without care for cost.

    A token is the period in which it was given and, for a trial, its number. The open
    window is looked up in a list of what a backoff says; the last entry goes for all
    further ones.
    """

    def __init__(self, settings, now):
        self.settings = settings
        self.news = []
        self.period = -1
        self.trials = 0
        self.failed = 0
        self.window = None
        self.passed = []
        self.state = CLOSED
        self.enter(CLOSED, now)
        self.news.clear()

    def enter(self, state, now):
        """Begin *state* afresh."""
        before, self.state = self.state, state
        self.period += 1
        self.events = []
        self.row = 0
        self.passed = []
        self.newest_trial = None
        self.next_trial = now
        if state is CLOSED:
            self.failed, self.window = 0, None
        if state is OPEN:
            self.next_trial = now + self.open_window()
        if state is not before:
            self.news.append(state)
        if before is CLOSED:
            self.news.append(EventCount(0, 0))

    def open_window(self):
        """Return how long to be open this time."""
        window = self.settings["circuit_open_window"]
        if isinstance(window, Listed):
            said = window.said[: self.failed + 1][-1]
            if said is None:
                window = 10.0 if self.window is None else self.window
            else:
                window = said
        self.window = window
        return window

    def try_request(self, now):
        """Return a token, or None."""
        if self.state is CLOSED:
            return self.period, None
        if self.state is FORCED_OPEN or now < self.next_trial:
            self.news.append("rejected")
            return None
        if self.state is OPEN:
            self.news.append(HALF_OPEN)
        self.state = HALF_OPEN
        self.trials += 1
        self.newest_trial = self.trials
        self.next_trial = now + self.settings["trial_request_interval"]
        return self.period, self.trials

    def answer(self, token, success, now):
        """Take an answer; no token is one of the present period."""
        if token is not None and token[0] != self.period:
            return
        if self.state is HALF_OPEN:
            self.answer_trial(token, success, now)
        elif self.state is CLOSED:
            self.count(success, now)

    def answer_trial(self, token, success, now):
        """Take the answer of a trial that has not succeeded before."""
        if token is not None and token in self.passed:
            return
        if not success:
            self.failed += self.window is not None
            self.enter(OPEN, now)
            return
        self.passed.append(token)
        if len(self.passed) >= self.settings["success_threshold"]:
            self.enter(CLOSED, now)
        elif token is not None:
            self.ignore(token, now)

    def count(self, success, now):
        """Add an event, and judge it."""
        bucket = now
        if self.events:
            newest = self.events[-1][0]
            if now - newest < self.settings["counter_update_interval"]:
                bucket = newest
        self.events.append((bucket, now, success))
        count = self.event_count(now)
        if success:
            self.row = 0
        elif (
            count.total >= self.settings["minimum_request_threshold"]
            and count.failure / count.total > self.settings["failure_rate_threshold"]
        ):
            self.enter(OPEN, now)
            return
        elif self.settings["consecutive_failures"] is not None:
            self.row += 1
            if self.row >= self.settings["consecutive_failures"]:
                self.enter(OPEN, now)
                return
        self.news.append(count)

    def ignore(self, token, now):
        """Take a token back."""
        if self.newest_trial is not None and token == (self.period, self.newest_trial):
            self.newest_trial = None
            self.next_trial = now

    def event_count(self, now):
        """Count what is not older than the window; forget the rest."""
        since = now - self.settings["counter_sliding_window"]
        self.events = [event for event in self.events if event[0] >= since]
        recent = [success for _, _, success in self.events]
        return EventCount(recent.count(True), recent.count(False))

    def retry_in(self, now):
        """Return the seconds to the next request that may be granted."""
        if self.state is FORCED_OPEN:
            return None
        return 0.0 if self.state is CLOSED else max(0.0, self.next_trial - now)


class Listed(Backoff):
    """A backoff that says what is in a list, and then the last of it again."""

    def __init__(self, said):
        self.said = said

    def next_delay(self, num_attempts_so_far):
        return self.said[:num_attempts_so_far][-1]


class Reporter(CircuitBreakerListener):
    """A listener that takes down all news."""

    def __init__(self):
        self.news = []

    def on_state_changed(self, circuit_breaker, state):
        assert circuit_breaker.state is state

        self.news.append(state)

    def on_event_count_updated(self, circuit_breaker, event_count):
        assert circuit_breaker.event_count == event_count

        self.news.append(event_count)

    def on_request_rejected(self, circuit_breaker):
        self.news.append("rejected")


ticks = st.integers(1, 80).map(lambda number: number * TICK)
windows = ticks | st.lists(st.none() | ticks | st.just(0.0), min_size=1).map(Listed)
rows = st.none() | st.integers(1, 5)
around = st.sampled_from([-TICK, 0.0, TICK])


class BreakerMachine(RuleBasedStateMachine):
    """Does the same to both, with permits answered in any order, and compares."""

    permits = Bundle("permits")

    @initialize(
        threshold=st.sampled_from([0.1, 0.25, 1 / 3, 0.5, 0.75, 1.0]),
        minimum=st.integers(0, 6),
        row=rows,
        trials=st.integers(1, 4),
        trial_interval=ticks,
        open_window=windows,
        interval=ticks,
        more=ticks,
    )
    def make(
        self,
        threshold,
        minimum,
        row,
        trials,
        trial_interval,
        open_window,
        interval,
        more,
    ):
        """Make both circuit breakers with the same settings."""
        settings = {
            "failure_rate_threshold": threshold,
            "minimum_request_threshold": minimum,
            "consecutive_failures": row,
            "success_threshold": trials,
            "trial_request_interval": trial_interval,
            "circuit_open_window": open_window,
            "counter_sliding_window": interval + more,
            "counter_update_interval": interval,
        }
        self.now = 1000.0
        self.newest = None
        self.is_updated = False
        self.reporter = Reporter()
        self.naive = NaiveBreaker({**settings}, self.now)
        self.breaker = CircuitBreaker(
            **settings, clock=lambda: self.now, listeners=[self.reporter]
        )

    def try_request(self):
        """Both grant or both refuse, and agree on what a trial is."""
        permit, token = self.breaker.try_request(), self.naive.try_request(self.now)

        assert (token is None) == (permit is None)
        assert permit is None or (token[1] is not None) == permit.is_trial
        return permit, token

    def report(self, permit, token, *, success):
        """Tell both what came of a request."""
        if success:
            self.breaker.on_success(permit)
        else:
            self.breaker.on_failure(permit)
        self.naive.answer(token, success, self.now)

    def ask_and_keep(self):
        """Ask for a permit to be answered later."""
        permit, token = self.try_request()
        if permit is None:
            return multiple()
        self.newest = permit, token
        return self.newest

    def give_back(self, permit, token):
        """Tell both that nothing came of a request."""
        self.breaker.on_ignored(permit)
        self.naive.ignore(token, self.now)

    @rule(target=permits)
    def ask(self):
        """Ask now."""
        return self.ask_and_keep()

    @rule(pair=permits, success=st.booleans())
    def answer(self, pair, success):
        """Answer any permit ever given, more than once too."""
        self.report(*pair, success=success)

    @rule(success=st.booleans())
    def answer_without_permit(self, success):
        """Answer to the present state."""
        self.report(None, None, success=success)

    @rule(pair=permits)
    def ignore(self, pair):
        """Give any permit back, more than once too."""
        self.give_back(*pair)

    @rule(outcomes=st.lists(st.booleans(), max_size=8))
    def serve(self, outcomes):
        """Let requests come and be answered at once."""
        for success in outcomes:
            permit, token = self.try_request()
            if permit is not None:
                self.report(permit, token, success=success)

    @rule(state=st.sampled_from(CircuitState))
    def enter(self, state):
        """Enter a state by hand."""
        self.breaker.enter_state(state)
        self.naive.enter(state, self.now)

    @rule(
        changes=st.fixed_dictionaries(
            {},
            optional={
                "failure_rate_threshold": st.sampled_from([0.1, 0.5, 1.0]),
                "minimum_request_threshold": st.integers(0, 6),
                "consecutive_failures": rows,
                "success_threshold": st.integers(1, 4),
                "trial_request_interval": ticks,
                "circuit_open_window": windows,
                "counter_sliding_window": ticks,
                "counter_update_interval": ticks,
            },
        )
    )
    def update(self, changes):
        """Change settings; those that do not fit together change nothing."""
        settings = self.naive.settings | changes
        if settings["counter_sliding_window"] > settings["counter_update_interval"]:
            self.breaker.update(**changes)
            self.naive.settings = settings
            self.is_updated = True
        else:
            with pytest.raises(ValueError):
                self.breaker.update(**changes)

    @rule(ticks=st.integers(0, 200))
    def wait(self, ticks):
        """Let any time pass."""
        self.now += ticks * TICK

    @rule(target=permits, around=around)
    def ask_for_trial(self, around):
        """Go to the edge of the time for the next trial, and ask."""
        self.now = max(self.now, self.naive.next_trial + around)
        return self.ask_and_keep()

    @precondition(lambda self: self.newest is not None)
    @rule(success=st.booleans())
    def answer_newest(self, success):
        """Answer the permit given last."""
        self.report(*self.newest, success=success)

    @precondition(lambda self: self.newest is not None)
    @rule()
    def ignore_newest(self):
        """Give the permit given last back."""
        self.give_back(*self.newest)

    @precondition(lambda self: self.naive.events)
    @rule(
        around=around,
        oldest=st.booleans(),
        setting=st.sampled_from(["counter_sliding_window", "counter_update_interval"]),
        success=st.booleans(),
    )
    def wait_for_window(self, around, oldest, setting, success):
        """Go to the edge of the window, or of the bucket, of an event; add another."""
        bucket, _, _ = self.naive.events[0 if oldest else -1]
        edge = bucket + self.naive.settings[setting]
        self.now = max(self.now, edge + around)
        self.report(None, None, success=success)

    @invariant()
    def both_agree(self):
        """State, count, time to wait and news are the same."""
        assert self.naive.state is self.breaker.state
        assert self.naive.event_count(self.now) == self.breaker.event_count
        assert self.naive.retry_in(self.now) == self.breaker.retry_in
        assert self.naive.news == self.reporter.news

    @precondition(lambda self: not self.is_updated)
    @invariant()
    def events_count_as_long_as_promised(self):
        """An event counts for the window less one interval, never beyond the window."""
        settings = self.naive.settings
        oldest = self.now - settings["counter_sliding_window"]
        promised = oldest + settings["counter_update_interval"]
        times = [time for _, time, _ in self.naive.events]
        counted = self.breaker.event_count.total

        assert sum(time > promised for time in times) <= counted
        assert counted <= sum(time >= oldest for time in times)


TestBreaker = BreakerMachine.TestCase
TestBreaker.settings = hypothesis.settings(
    max_examples=5 * hypothesis.settings.default.max_examples
)
