"""The circuit breaker: it stops requests to a server that fails, and tries again."""

from __future__ import annotations

import logging
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Final, TypedDict, Unpack

from .. import _checks as check
from .._call.servers import is_slow
from .._clock import loop_time
from .._errors import (
    RefusedRequestError,
    bad_argument,
    call_it,
    checked_name,
    is_finite,
    nearest,
)
from .._policies.backoff import Backoff
from .._policies.listeners import Listeners
from .._values import Shared
from .state import CircuitPermit, CircuitState, EventCount, SlidingWindow, State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .._call.call import Context
    from .wait_for_ready import WaitingLine


_logger = logging.getLogger("aioretry_smithy")

_SECONDS: Final = (
    "trial_request_interval",
    "counter_sliding_window",
    "counter_update_interval",
)

_USUAL_WINDOW: Final = 10.0
"""The open window in seconds, where a backoff has not said any."""


class CircuitBreakerChanges(TypedDict, total=False):
    """The keyword arguments of :meth:`.CircuitBreaker.update`."""

    failure_rate_threshold: float
    minimum_request_threshold: int
    consecutive_failures: int | None
    success_threshold: int
    trial_request_interval: float
    circuit_open_window: float | Backoff
    counter_sliding_window: float
    counter_update_interval: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CircuitBreakerSettings:
    """The settings that :class:`.CircuitBreaker` describes.

    Raises:
        ValueError: One of them is out of range.
    """

    failure_rate_threshold: float
    minimum_request_threshold: int
    consecutive_failures: int | None = None
    success_threshold: int = 1
    trial_request_interval: float
    circuit_open_window: float | Backoff
    counter_sliding_window: float
    counter_update_interval: float

    def __post_init__(self) -> None:
        threshold = self.failure_rate_threshold
        if not is_finite(threshold) or not 0 < threshold <= 1:
            raise bad_argument("failure_rate_threshold", threshold, "> 0 and <= 1")
        check.integer("minimum_request_threshold", self.minimum_request_threshold, 0)
        check.integer(
            "consecutive_failures", self.consecutive_failures, 1, or_none=True
        )
        check.integer("success_threshold", self.success_threshold, 1)
        for name in _SECONDS:
            check.positive(name, getattr(self, name))
        _check_open_window(self.circuit_open_window)
        window, interval = self.counter_sliding_window, self.counter_update_interval
        if window <= interval:
            expected = f"> counter_update_interval, {interval!r}"
            raise bad_argument("counter_sliding_window", window, expected)

    def __str__(self) -> str:
        # Texts of errors have it, and stay as they were for who asks for neither.
        return ", ".join(
            f"{field.name}={value!r}"
            for field in fields(self)
            if (value := getattr(self, field.name)) != field.default
        )

    def changed(
        self, **changes: Unpack[CircuitBreakerChanges]
    ) -> CircuitBreakerSettings:
        """Return a copy of the settings with some changes.

        Raises:
            ValueError: One is out of range, or there is none of its name.
        """
        known = [field.name for field in fields(self)]
        for name in changes:
            if name not in known:
                expected = f"a setting that may change{nearest(name, known)}"
                raise bad_argument("argument", name, expected)
        return replace(self, **changes)

    def open_window(self, number: int, last: float | None, owner: str) -> float:
        """Return the seconds for which a circuit is to be open.

        Args:
            number: Which time it is in a row, from 1.
            last: The seconds before, which stay where a backoff has none to say.
            owner: The circuit breaker, for logs.
        """
        window = self.circuit_open_window
        if not isinstance(window, Backoff):
            return window
        try:
            seconds = window.next_delay(number)
            check.not_negative("next_delay", seconds, or_none=True)
        except Exception:
            message = "%s: its open window stays: %r raised"
            _logger.warning(message, owner, window, exc_info=True)
            seconds = None
        if seconds is not None:
            return seconds
        return _USUAL_WINDOW if last is None else last


def _check_open_window(window: object) -> None:
    if isinstance(window, Backoff) or (is_finite(window) and window > 0):
        return
    expected = f"finite and > 0, or a Backoff{call_it(window, Backoff)}"
    raise bad_argument("circuit_open_window", window, expected)


_NONE = EventCount(success=0, failure=0)


class CircuitBreakerListener:
    """Receives the events of a circuit breaker; override the methods you need.

    The methods are plain, and called one event after the other, when the circuit
    breaker has already changed, so they may use it. What they raise is logged.

    >>> class Bell(CircuitBreakerListener):
    ...     def on_state_changed(self, circuit_breaker, state):
    ...         print(circuit_breaker.name, "is", state)
    >>> breaker = CircuitBreaker("orders", listeners=[Bell()])
    >>> breaker.enter_state(CircuitState.FORCED_OPEN)
    orders is forced_open
    """

    def on_state_changed(
        self, circuit_breaker: CircuitBreaker, state: CircuitState
    ) -> None:
        """Called when the circuit breaker went into another state."""

    def on_event_count_updated(
        self, circuit_breaker: CircuitBreaker, event_count: EventCount
    ) -> None:
        """Called when an event was counted, or the count began anew."""

    def on_request_rejected(self, circuit_breaker: CircuitBreaker) -> None:
        """Called when the open circuit refused a request."""


class CircuitBreaker(Shared):
    """Refuses requests while too many fail, then admits single trials.

    CLOSED counts successes and failures. A failure opens the circuit when the window
    holds at least *minimum_request_threshold* events, that failure included, and the
    failure rate is strictly above *failure_rate_threshold*; or when it is the last of
    *consecutive_failures* in a row, whatever the window holds. OPEN refuses everything.
    The first request after *circuit_open_window* turns it HALF_OPEN and is the one
    trial: its failure opens the circuit again, and its success closes it, or is the
    first of *success_threshold*; the next trial then follows at once. Without an
    answer, another trial follows after *trial_request_interval*, and the answers to all
    of them count.

    A server that restarts cuts all connections at once, which is one failure: a broken
    connection whose request began before the last failure that was counted is not
    counted. :class:`CircuitBreakerClient` knows when that was; a failure that you
    report by hand counts.

    There is no timer: states change when requests come and answers arrive. The whole
    state is one value that is swapped without awaiting, so tasks of one event loop
    may share a circuit breaker; threads may not. A copy is the same object. After
    Armeria's ``CircuitBreaker``, which differs in that it looks at the count once per
    update interval only.

    Args:
        name: For logs, listeners and errors; ``circuit-breaker-0``, ``-1``, ... by
            default.
        failure_rate_threshold: Share of failures that is still tolerated, > 0 and
            <= 1. With 1 only *consecutive_failures* and :meth:`enter_state` open the
            circuit.
        minimum_request_threshold: Events in the window that it takes to open the
            circuit, an int >= 0.
        consecutive_failures: Failures with no success between that open the circuit, an
            int >= 1, however long they take; None looks at the window alone.
        success_threshold: Trials that succeed before the circuit closes, an int >= 1.
        trial_request_interval: Seconds before another trial, > 0.
        circuit_open_window: Seconds from opening to the first trial, > 0. Or a
            :class:`Backoff`, such as ``Backoff.exponential(10.0, 120.0)
            .with_jitter(0.2)``: it is asked for the first window, and for the next one
            each time that trials have failed, until the circuit closes. Where it says
            None or raises, which is logged, the last window stays (10 s before any).
        counter_sliding_window: Seconds that an event counts, > counter_update_interval.
        counter_update_interval: Seconds of events that are forgotten together, > 0.
        listeners: Called for each change, in this order.
        clock: Seconds that never go back; by default the running event loop's time,
            without one :func:`time.monotonic`.

    Raises:
        ValueError: An argument is not as described.

    >>> breaker = CircuitBreaker("orders", minimum_request_threshold=2)
    >>> for _ in range(2):
    ...     breaker.on_failure(breaker.try_request())
    >>> breaker.state, breaker.try_request()
    (<CircuitState.OPEN: 'open'>, None)
    """

    def __init__(
        self,
        name: str | None = None,
        *,
        failure_rate_threshold: float = 0.5,
        minimum_request_threshold: int = 10,
        consecutive_failures: int | None = None,
        success_threshold: int = 1,
        trial_request_interval: float = 3.0,
        circuit_open_window: float | Backoff = 10.0,
        counter_sliding_window: float = 20.0,
        counter_update_interval: float = 1.0,
        listeners: Iterable[CircuitBreakerListener] = (),
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._settings = CircuitBreakerSettings(
            failure_rate_threshold=failure_rate_threshold,
            minimum_request_threshold=minimum_request_threshold,
            consecutive_failures=consecutive_failures,
            success_threshold=success_threshold,
            trial_request_interval=trial_request_interval,
            circuit_open_window=circuit_open_window,
            counter_sliding_window=counter_sliding_window,
            counter_update_interval=counter_update_interval,
        )
        if clock is not None and not callable(clock):
            raise bad_argument("clock", clock, "a callable that returns seconds")
        self._clock = loop_time if clock is None else clock
        self._name = checked_name(name, "circuit-breaker")
        self._listeners = Listeners(
            f"circuit breaker {self._name!r}", listeners, CircuitBreakerListener
        )
        self._reported: tuple[Context, Exception | None] | None = None
        self._line: WaitingLine | None = None
        self._state = self._closed(generation=0)

    @property
    def name(self) -> str:
        """The name of the circuit breaker in logs, errors and to listeners."""
        return self._name

    @property
    def state(self) -> CircuitState:
        """The state as of the last request or answer."""
        return self._state.circuit

    @property
    def event_count(self) -> EventCount:
        """The successes and failures in the window; only CLOSED counts."""
        window = self._state.window
        return _NONE if window is None else window.count(self._clock())

    @property
    def retry_in(self) -> float | None:
        """Seconds until :meth:`try_request` may grant a request.

        0.0 if it would grant one now; None in FORCED_OPEN, which no time ends.
        """
        state = self._state
        if state.trial_at is not None:
            return max(0.0, state.trial_at - self._clock())
        return 0.0 if state.circuit is CircuitState.CLOSED else None

    def try_request(self) -> CircuitPermit | None:
        """Ask for permission to send one request.

        Returns:
            The permit to report the answer with, or None when it must not be sent.
            Give a permit back with :meth:`on_ignored` where no answer comes.
        """
        state = self._state
        if state.window is not None:
            return state.permit
        if state.trial_at is not None:
            now = self._clock()
            if now >= state.trial_at:
                return self._grant_trial(state, now)
        self._listeners.notify(lambda listener: listener.on_request_rejected(self))
        return None

    def on_success(self, permit: CircuitPermit | None = None) -> None:
        """Report that a request succeeded.

        Args:
            permit: What :meth:`try_request` gave for the request. The answer to a
                permit of an earlier state is ignored; an answer without a permit
                counts for the present state.

        Raises:
            ValueError: *permit* is something else, such as the failure.
        """
        state = self._state
        if permit is not state.permit and state.is_after(permit):
            return
        if state.window is not None:
            now = self._clock()
            state.window.add_success(now)
            if self._listeners.has_any:
                self._notify_count(state.window.count(now))
        elif state.circuit is CircuitState.HALF_OPEN:
            self._count_trial(state, permit)

    def on_failure(self, permit: CircuitPermit | None = None) -> None:
        """Report that a request failed.

        Args:
            permit: As for :meth:`on_success`.

        Raises:
            ValueError: As :meth:`on_success` does.
        """
        state, failure = self._state, self._reported
        if permit is not state.permit and state.is_after(permit):
            return
        window, settings = state.window, self._settings
        if window is not None:
            if failure is not None and not state.rounds.count(*failure):
                return
            now = self._clock()
            window.add_failure(now)
            row = settings.consecutive_failures
            if window.exceeds(
                settings.minimum_request_threshold, settings.failure_rate_threshold
            ) or (row is not None and window.row() >= row):
                self.enter_state(CircuitState.OPEN)
            elif self._listeners.has_any:
                self._notify_count(window.count(now))
        elif state.circuit is CircuitState.HALF_OPEN:
            self._fail_trial(state, permit)

    def on_ignored(self, permit: CircuitPermit) -> None:
        """Return a permit without a verdict: the request was cancelled or ignored.

        Nothing is counted. The place of the newest trial is free again at once, so
        the next request is the trial.

        Args:
            permit: What :meth:`try_request` gave for the request.

        Raises:
            ValueError: *permit* is something else, such as the None of a refusal.
        """
        if not isinstance(permit, CircuitPermit):
            raise bad_argument("permit", permit, "a permit of try_request()")
        state = self._state
        if permit.is_trial and permit is state.permit:
            self._state = replace(state, trial_at=self._clock())
            self._look()

    def enter_state(self, state: CircuitState) -> None:
        """Enter a state anew, even the present one.

        CLOSED begins with an empty count, OPEN with the whole open window, HALF_OPEN
        with a free place for a trial. Only this method enters and leaves FORCED_OPEN.
        Permits given before no longer count. Only failed trials let the open window
        grow, and only CLOSED takes it back to its first.

        Args:
            state: The state to be in.

        Raises:
            ValueError: *state* is no :class:`CircuitState`.
        """
        check.kind("state", state, CircuitState)
        self._enter(state)

    def update(self, **settings: Unpack[CircuitBreakerChanges]) -> None:
        """Change settings while the circuit breaker works: all of these, or none.

        They apply from the next opening, trial or outcome on. An open circuit stays
        open for as long as it was to be, and what was counted stays counted.

        Args:
            settings: Arguments of :class:`CircuitBreaker`, without *name*, *listeners*
                and *clock*.

        Raises:
            ValueError: One is not as described, or there is none of its name.

        >>> breaker = CircuitBreaker("orders")
        >>> breaker.update(minimum_request_threshold=50, success_threshold=3)
        """
        self._settings = changed = self._settings.changed(**settings)
        if self._state.window is not None:
            self._state.window.resize(
                changed.counter_sliding_window, changed.counter_update_interval
            )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._name!r}, {self._settings})"

    def _fail_trial(self, state: State, permit: CircuitPermit | None) -> None:
        """Open the circuit again, unless this trial has succeeded before."""
        if not state.has_counted(permit):
            if state.open_window is not None:
                # Otherwise there was none that has to grow: half open by hand.
                self._state = replace(state, failed=state.failed + 1)
            self.enter_state(CircuitState.OPEN)

    def _count_trial(self, state: State, permit: CircuitPermit | None) -> None:
        """Count the success of a trial; close the circuit if these are enough."""
        if state.has_counted(permit):
            return
        if len(state.passed) + 1 >= self._settings.success_threshold:
            self.enter_state(CircuitState.CLOSED)
        else:
            self._state = state.with_success(permit, self._clock())
            self._look()

    def _enter(
        self,
        circuit: CircuitState,
        trial_in: float | None = None,
        *,
        was_slow: bool = False,
    ) -> None:
        """Enter a state, OPEN for the given seconds."""
        if circuit is CircuitState.OPEN and trial_in is None:
            trial_in = self._draw_open_window()
        left = self._state
        if circuit is CircuitState.CLOSED:
            self._state = self._closed(left.generation + 1)
        else:
            trial_at = self._clock() + (trial_in or 0.0)
            reported = self._reported
            was_slow = was_slow or (reported is not None and is_slow(*reported))
            self._state = left.followed_by(circuit, trial_at, was_slow=was_slow)
        events: list[Callable[[CircuitBreakerListener], None]] = []
        if left.circuit is not circuit:
            events.append(lambda listener: listener.on_state_changed(self, circuit))
        if left.circuit is CircuitState.CLOSED:
            events.append(lambda listener: listener.on_event_count_updated(self, _NONE))
        self._listeners.notify(*events)
        self._look()

    def _look(self) -> None:
        """Let the waiting requests check the state of the circuit."""
        if self._line is not None:
            self._line.look()

    def _closed(self, generation: int) -> State:
        settings = self._settings
        window = SlidingWindow(
            settings.counter_sliding_window, settings.counter_update_interval
        )
        permit = CircuitPermit(generation, is_trial=False)
        return State(CircuitState.CLOSED, generation, window=window, permit=permit)

    def _draw_open_window(self) -> float:
        """Ask for the seconds of the next open window, and remember them."""
        before = self._state
        seconds = self._settings.open_window(
            before.failed + 1, before.open_window, f"circuit breaker {self._name!r}"
        )
        # Not the state of before: a backoff of the user's own may do anything.
        self._state = replace(self._state, open_window=seconds)
        return seconds

    def _grant_trial(self, state: State, now: float) -> CircuitPermit:
        # All trials until the circuit opens or closes are of one generation, so that a
        # server which takes longer to answer than the trial interval can close it too.
        permit = CircuitPermit(state.generation, is_trial=True)
        next_at = now + self._settings.trial_request_interval
        half_open = CircuitState.HALF_OPEN
        self._state = replace(state, circuit=half_open, permit=permit, trial_at=next_at)
        if state.circuit is not half_open:
            self._listeners.notify(
                lambda listener: listener.on_state_changed(self, half_open)
            )
        return permit

    def _notify_count(self, event_count: EventCount) -> None:
        self._listeners.notify(
            lambda listener: listener.on_event_count_updated(self, event_count)
        )


def next_open_window(breaker: CircuitBreaker, failed: int) -> float:
    """Return the seconds of the next open window, where others have tried the server.

    Args:
        breaker: The circuit breaker, which is about to open, or is open.
        failed: How many generations of trials have failed there, since it was closed.
    """
    state = breaker._state
    breaker._state = replace(state, failed=max(state.failed, failed))
    return breaker._draw_open_window()


_KEPT: Final = {"circuit_breaker": ("name", "state", "event_count")}


class FailFastError(RefusedRequestError):
    """The circuit breaker is open; the request was not sent.

    It may be pickled; it then has a snapshot of the circuit breaker, with its ``name``,
    ``state`` and ``event_count``.

    Args:
        circuit_breaker: The circuit breaker that refused.
        retry_in: Seconds until it may grant a trial, or None when only
            ``enter_state()`` will open the way again.
    """

    circuit_breaker: CircuitBreaker
    """The circuit breaker that refused."""

    retry_in: float | None
    """Seconds until a trial may be granted, counted from the refusal, or None."""

    is_of_endpoint: bool = False
    """Whether the circuit of a single endpoint refused; a different one may serve."""

    _snapshots = _KEPT

    _is_half_open: bool

    def __init__(
        self, circuit_breaker: CircuitBreaker, retry_in: float | None = None
    ) -> None:
        super().__init__(circuit_breaker, retry_in)
        self.circuit_breaker = circuit_breaker
        self.retry_in = retry_in
        # By the time that it is shown the circuit may be closed.
        state = getattr(circuit_breaker, "state", None)
        self._is_half_open = state is CircuitState.HALF_OPEN

    def __str__(self) -> str:
        when = "" if self.retry_in is None else f", next trial in {self.retry_in:.3f} s"
        state = "half open: a trial is under way" if self._is_half_open else "open"
        return f"circuit breaker {self.circuit_breaker.name!r} is {state}{when}"
