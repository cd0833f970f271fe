"""The states of a circuit breaker, and the permits that it gives in them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from .._call.tries import Rounds
from .._errors import bad_argument
from .._values import NeverCopied

if TYPE_CHECKING:
    from .window import SlidingWindow


class CircuitState(StrEnum):
    """The state of a circuit: admits all requests, none, or single trials."""

    CLOSED = "closed"
    """Everything; failures are counted."""

    OPEN = "open"
    """Nothing, until the open window has passed."""

    HALF_OPEN = "half_open"
    """One trial at a time, whose answers decide."""

    FORCED_OPEN = "forced_open"
    """Nothing, until another state is entered by hand."""


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
            raise bad_argument("permit", permit, "what try_request() gave, or None")
        return permit.generation != self.generation

    def with_trial(self, permit: CircuitPermit, next_at: float) -> State:
        """Return the state with another trial, and when the next one may follow."""
        circuit = CircuitState.HALF_OPEN
        return replace(self, circuit=circuit, permit=permit, trial_at=next_at)

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
        """Return the next state, in which nothing goes out but trials, if these do."""
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
