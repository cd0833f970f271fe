"""The states of a circuit breaker: what is counted, and who gets a permit."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field, replace
from enum import StrEnum

from .._call.servers import Rounds
from .._errors import bad_argument
from .._values import NeverCopied


@dataclass(frozen=True, slots=True)
class EventCount:
    """The successes and failures within the window of a circuit breaker.

    Args:
        success: Number of successes.
        failure: Number of failures.

    >>> EventCount(success=3, failure=1).failure_rate
    0.25
    """

    success: int
    """Number of successes."""

    failure: int
    """Number of failures."""

    @property
    def total(self) -> int:
        """Number of successes and failures together."""
        return self.success + self.failure

    @property
    def failure_rate(self) -> float | None:
        """Share of failures, from 0.0 to 1.0, or None when nothing was counted."""
        return self.failure / self.total if self.total else None


class SlidingWindow:
    """Counts events in buckets and forgets a bucket once it is older than the window.

    A bucket starts with its first event and takes all that follow within *interval*,
    so an event counts for at least ``window - interval`` and at most ``window``
    seconds. The totals run along: an event costs the same however many are counted,
    and each bucket is dropped once.

    >>> window = SlidingWindow(window=20.0, interval=1.0)
    >>> window.add_success(now=0.0)
    >>> window.add_failure(now=10.0)
    >>> window.count(now=20.0)
    EventCount(success=1, failure=1)
    >>> window.count(now=20.5)
    EventCount(success=0, failure=1)
    """

    __slots__ = (
        "_buckets",
        "_failure",
        "_forgotten",
        "_interval",
        "_newest",
        "_row",
        "_success",
        "_successes",
        "_until",
        "_window",
    )

    def __init__(self, window: float, interval: float) -> None:
        self._window = window
        self._interval = interval
        self._buckets: deque[_Bucket] = deque()
        self._newest = _NO_BUCKET
        self._until = -math.inf
        self._failure = 0
        # Without those of the newest bucket.
        self._success = 0
        # Successes that are too old; the failures in a row, and all successes until the
        # last of them, which tell whether it goes on: so a success pays nothing for it.
        self._forgotten = self._row = self._successes = 0

    def add_success(self, now: float) -> None:
        """Count a success that happened *now*."""
        # Most events come while the newest bucket is open, and no other is too old.
        bucket = self._newest if now < self._until else self._bucket_at(now)
        bucket.success += 1

    def add_failure(self, now: float) -> None:
        """Count a failure that happened *now*."""
        bucket = self._newest if now < self._until else self._bucket_at(now)
        bucket.failure += 1
        self._failure += 1

    def exceeds(self, threshold: int, rate: float) -> bool:
        """Say whether *threshold* events are there, and more than *rate* are failures.

        Asked right after an event was added.
        """
        failure = self._failure
        total = failure + self._success + self._newest.success
        return total >= threshold and failure / total > rate

    def row(self) -> int:
        """Return the number of consecutive failures, independent of time.

        Asked once for each failure, right after it was added.
        """
        successes = self._forgotten + self._success + self._newest.success
        if successes != self._successes:
            self._successes, self._row = successes, 0
        self._row += 1
        return self._row

    def count(self, now: float) -> EventCount:
        """Return what the window holds *now*, the event just added included."""
        self._forget_before(now - self._window)
        return EventCount(self._success + self._newest.success, self._failure)

    def resize(self, window: float, interval: float) -> None:
        """Apply new settings to the window, and drop counts that are too old."""
        self._window, self._interval = window, interval
        self._until = -math.inf

    def newest(self, now: float) -> EventCount:
        """Return what the newest bucket holds; nothing after two intervals."""
        newest = self._newest
        if now - newest.started_at > 2 * self._interval:
            return EventCount(0, 0)
        return EventCount(newest.success, newest.failure)

    def _bucket_at(self, now: float) -> _Bucket:
        buckets = self._buckets
        self._forget_before(now - self._window)
        # A clock that goes back finds a bucket that is still open, so nothing is lost.
        if not buckets or now - self._newest.started_at >= self._interval:
            self._success += self._newest.success
            self._newest = _Bucket(now)
            buckets.append(self._newest)
        oldest, newest = buckets[0].started_at, self._newest.started_at
        self._until = min(newest + self._interval, oldest + self._window)
        return self._newest

    def _forget_before(self, horizon: float) -> None:
        buckets = self._buckets
        while buckets and buckets[0].started_at < horizon:
            bucket, self._until = buckets.popleft(), -math.inf
            self._failure -= bucket.failure
            self._forgotten += bucket.success
            if buckets:
                self._success -= bucket.success
            else:
                self._newest = _NO_BUCKET


class _Bucket:
    __slots__ = ("failure", "started_at", "success")

    def __init__(self, started_at: float) -> None:
        self.started_at = started_at
        self.success = self.failure = 0


_NO_BUCKET = _Bucket(-math.inf)


class CircuitState(StrEnum):
    """The state of a circuit: admits all requests, none, or single trials."""

    CLOSED = "closed"
    """All requests go out; failures are counted."""

    OPEN = "open"
    """Nothing, until the open window has passed."""

    HALF_OPEN = "half_open"
    """A single trial at a time goes out; the answers decide."""

    FORCED_OPEN = "forced_open"
    """No request goes out until a new state is entered by hand."""


@dataclass(frozen=True, slots=True, eq=False)
class CircuitPermit(NeverCopied):
    """The permission to send one request, from :meth:`CircuitBreaker.try_request`.

    Report the answer together with it: the circuit breaker ignores the answer to a
    permit of an earlier state.
    """

    generation: int
    """How often the circuit had been opened, closed or set by hand before."""

    is_trial: bool
    """Whether the answer decides if the circuit closes or opens."""


@dataclass(frozen=True, slots=True)
class State:
    """The whole state of a circuit breaker, swapped at each change."""

    circuit: CircuitState
    generation: int

    window: SlidingWindow | None = None
    """In CLOSED: the outcomes that are counted."""

    permit: CircuitPermit | None = None
    """In CLOSED: of all requests; in HALF_OPEN: of the newest trial."""

    trial_at: float | None = None
    """In OPEN and HALF_OPEN: when the next trial may be granted."""

    rounds: Rounds = field(default_factory=Rounds)
    """In CLOSED: which broken connections are counted."""

    passed: tuple[CircuitPermit | None, ...] = ()
    """In HALF_OPEN: the trials that succeeded; None for what came without a permit."""

    failed: int = 0
    """How many generations of trials have failed since the circuit was closed."""

    open_window: float | None = None
    """The seconds of the last open window since then; None before the first."""

    was_slow: bool = False
    """In OPEN and HALF_OPEN: whether the server took long for the last failure."""

    @property
    def may_be_waited_for(self) -> bool:
        """Whether a trial will come, and requests that wait are no load till then.

        A server that is busy is to have none of those that it lets wait.
        """
        return self.trial_at is not None and not self.was_slow

    def is_after(self, permit: CircuitPermit | None) -> bool:
        """Say whether a permit was given in an earlier state."""
        if permit is None:
            return False
        if not isinstance(permit, CircuitPermit):
            raise bad_argument("permit", permit, "a permit of try_request(), or None")
        return permit.generation != self.generation

    def with_success(self, permit: CircuitPermit | None, now: float) -> State:
        """Return the state with one more trial that succeeded, and is not enough."""
        passed = (*self.passed, permit)
        if permit is None or permit is not self.permit:
            # A newer trial keeps its place.
            return replace(self, passed=passed)
        return replace(self, passed=passed, permit=None, trial_at=now)

    def followed_by(
        self, circuit: CircuitState, trial_at: float, *, was_slow: bool
    ) -> State:
        """Return the next state, in which only trials go out, or no request at all."""
        return State(
            circuit,
            self.generation + 1,
            trial_at=None if circuit is CircuitState.FORCED_OPEN else trial_at,
            failed=self.failed,
            open_window=self.open_window,
            was_slow=was_slow,
        )

    def has_counted(self, permit: CircuitPermit | None) -> bool:
        """Say whether this trial has succeeded before."""
        return permit is not None and permit in self.passed
