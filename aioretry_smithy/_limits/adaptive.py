"""Adapt a limit to the server: by drops, or by how long round trips take."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from .._clock import NEAR
from .._errors import bad_argument, check_int, check_not_negative, is_finite

_WARM_UP = 10
"""The number of samples up to which the average is a plain mean."""

_STALE = 2.0
"""An average that exceeds the last sample so many times is from a past overload."""

_FADE = 0.95
_STEEPEST = 0.5


@dataclass(slots=True, repr=False, eq=False)
class _Adaptive:
    """A limit that adapts within bounds.

    Raises:
        ValueError: *minimum* is not an int >= 1, or the others are not above it.
    """

    initial: float
    minimum: int
    maximum: float

    limit: float = field(init=False)
    """The limit with its fraction."""

    decreased_at: float = field(init=False, default=-math.inf)

    def __post_init__(self) -> None:
        minimum, maximum = self.minimum, self.maximum
        check_int("minimum", minimum, 1)
        if not is_finite(maximum) or maximum < minimum:
            raise bad_argument("maximum", maximum, f"finite and >= minimum, {minimum}")
        if not is_finite(self.initial) or not minimum <= self.initial <= maximum:
            expected = f"from minimum, {minimum}, to maximum, {maximum}"
            raise bad_argument("initial", self.initial, expected)
        self.limit = float(self.initial)

    def change(self, limit: float) -> None:
        """Set the limit to what is nearest to *limit* within the bounds."""
        self.limit = min(max(limit, float(self.minimum)), float(self.maximum))

    def described(self, kind: str, settings: str) -> str:
        """Return how such a limit is made."""
        low, high = self.minimum, self.maximum
        bounds = f"initial={self.initial!r}, minimum={low!r}, maximum={high!r}"
        return f"{kind}({bounds}, {settings})"

    def may_decrease(self, now: float, round_trip: float) -> bool:
        """Note a drop; return whether the limit is to be decreased for it.

        That is once a round trip, however many calls are dropped: a call that began
        before the last decrease says nothing of the limit after it.
        """
        if now - round_trip <= self.decreased_at + NEAR:
            return False
        self.decreased_at = now
        return True


@dataclass(slots=True, repr=False, eq=False)
class Aimd(_Adaptive):
    """Additive increase, multiplicative decrease: the rule of TCP's window.

    Raises:
        ValueError: An argument is not as described.
    """

    backoff_ratio: float
    """What is left of the limit after a drop, > 0 and < 1."""

    slow_after: float | None
    """Seconds after which an answer counts as a drop; None for never."""

    def __post_init__(self) -> None:
        _Adaptive.__post_init__(self)
        ratio, slow_after = self.backoff_ratio, self.slow_after
        if not is_finite(ratio) or not 0 < ratio < 1:
            raise bad_argument("backoff_ratio", ratio, "> 0 and < 1")
        if slow_after is not None and not (is_finite(slow_after) and slow_after > 0):
            raise bad_argument("slow_after", slow_after, "finite and > 0, or None")

    def add(
        self, now: float, round_trip: float, in_flight: int, *, dropped: bool
    ) -> None:
        """Learn from a call that ends *now*."""
        limit, slow_after = self.limit, self.slow_after
        if dropped or (slow_after is not None and round_trip > slow_after):
            if self.may_decrease(now, round_trip):
                self.change(limit * self.backoff_ratio)
        elif in_flight * 2 >= limit:
            self.change(limit + 1 / limit)

    def __repr__(self) -> str:
        ratio, slow_after = self.backoff_ratio, self.slow_after
        own = f"backoff_ratio={ratio!r}, slow_after={slow_after!r}"
        return self.described("aimd", own)


@dataclass(slots=True, repr=False, eq=False)
class Gradient(_Adaptive):
    """Netflix's Gradient2: compare each round trip with the average of the last ones.

    A drop has no round trip to compare. It counts as the steepest gradient, once a
    round trip, and is not in the average.

    Raises:
        ValueError: An argument is not as described.

    Source: ``Gradient2Limit`` of Netflix's ``concurrency-limits``.
    """

    tolerance: float
    """How many times the average a round trip may take, finite and >= 1."""

    smoothing: float
    """The share of a sample in the new limit, > 0 and <= 1."""

    queue: float
    """What is added to the limit each time, finite and >= 0."""

    window: int
    """The samples that the average is taken of, an int >= 1."""

    average: float = field(init=False, default=0.0)
    count: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        _Adaptive.__post_init__(self)
        if not is_finite(self.tolerance) or self.tolerance < 1:
            raise bad_argument("tolerance", self.tolerance, "finite and >= 1")
        if not is_finite(self.smoothing) or not 0 < self.smoothing <= 1:
            raise bad_argument("smoothing", self.smoothing, "> 0 and <= 1")
        check_not_negative("queue", self.queue)
        check_int("window", self.window, 1)

    def add(
        self, now: float, round_trip: float, in_flight: int, *, dropped: bool
    ) -> None:
        """Learn from a call that ends *now*."""
        if dropped:
            gradient, counts = _STEEPEST, self.may_decrease(now, round_trip)
        else:
            gradient, counts = self._compare(round_trip), in_flight >= self.limit / 2
        if not counts:
            return
        aim = self.limit * gradient + self.queue
        self.change(self.limit + (aim - self.limit) * self.smoothing)

    def _compare(self, round_trip: float) -> float:
        """Add a round trip to the average, and return the gradient."""
        self.count += 1
        is_warm = self.count > min(_WARM_UP, self.window)
        share = 2 / (self.window + 1) if is_warm else 1 / self.count
        self.average += (round_trip - self.average) * share
        average = self.average
        if average > _STALE * round_trip:
            self.average *= _FADE
        if round_trip <= 0:
            return 1.0
        return max(_STEEPEST, min(1.0, self.tolerance * average / round_trip))

    def __repr__(self) -> str:
        own = f"tolerance={self.tolerance!r}, smoothing={self.smoothing!r}"
        more = f"queue={self.queue!r}, window={self.window!r}"
        return self.described("gradient", f"{own}, {more}")
