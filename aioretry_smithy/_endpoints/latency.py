"""Estimate how long an endpoint takes to answer: high at once, lower in time.

An estimate decays while nobody asks, by the factor ``e`` in each ``decay`` seconds. So
that no choice has to compute that, estimates are kept as *heat*: seconds, times what a
second has grown to since an epoch, by the same factor. All heats decay alike, so they
can be compared as they are.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

_LARGEST: Final = 200.0
"""The exponent of growth from which on there is a new epoch."""


class Warm(Protocol):
    """Keeps the estimate of one endpoint."""

    heat: float
    """The latency in seconds, times the growth."""

    grown: float
    """The growth at the last answer; 0 as long as there was none."""

    penalty: float
    """Seconds that it counts as, at least."""


class Scale:
    """Tells what a second has grown to since an epoch.

    Args:
        decay: Seconds in which estimates fall to ``1 / e``, > 0.
        penalty: Seconds that a failure counts as, at least.
    """

    __slots__ = ("_epoch", "decay", "penalty", "states")

    decay: float
    """Seconds in which estimates fall to ``1 / e``."""

    penalty: float
    """Seconds that a failure counts as, at least."""

    states: Iterable[Warm]
    """The endpoints whose estimates are on this scale."""

    def __init__(self, decay: float, penalty: float) -> None:
        self.decay = decay
        self.penalty = penalty
        self.states = ()
        self._epoch: float | None = None

    def growth(self, now: float) -> float:
        """Return what a second has grown to; begin a new epoch where it is large."""
        epoch = self._epoch
        if epoch is None:
            self._epoch = epoch = now
        exponent = (now - epoch) / self.decay
        if exponent < _LARGEST:
            return math.exp(exponent)
        shrunk = math.exp(-min(exponent, 2 * _LARGEST))
        for state in self.states:
            state.heat *= shrunk
            state.grown *= shrunk
        self._epoch = now
        return 1.0


def seconds_of(state: Warm, growth: float) -> float:
    """Return the estimate of an endpoint as seconds, with its penalty."""
    return max(state.heat / growth, state.penalty)


def note_answer(state: Warm, took: float, growth: float) -> None:
    """Learn from an answer: a longer time counts in full, a shorter one by its age."""
    heat = state.heat + took * (growth - state.grown)
    state.heat = max(heat, took * growth)
    state.grown = growth


def note_refusal(state: Warm, took: float, growth: float) -> None:
    """Learn from an answer that the request was wrong: that is quick, but no work.

    The estimate does not fall; it is as it was after the last answer.
    """
    before = state.heat / state.grown if state.grown else 0.0
    state.heat = max(before, took) * growth
    state.grown = growth


def note_at_least(state: Warm, took: float, growth: float) -> None:
    """Learn from a request that was given up after so long: it may only raise."""
    if took * growth > state.heat:
        state.heat = took * growth
        state.grown = growth


def begin_anew(state: Warm, took: float, growth: float) -> None:
    """Forget what was before; begin with one answer."""
    state.heat, state.grown, state.penalty = took * growth, growth, 0.0
