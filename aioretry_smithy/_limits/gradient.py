"""Keep a limit where round trips begin to take longer than they used to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._errors import bad_argument, is_finite
from .cuts import Cuts

if TYPE_CHECKING:
    from .bounds import Bounds

_WARM_UP = 10
"""The number of samples up to which the average is a plain mean."""

_STALE = 2.0
"""An average that exceeds the last sample so many times is from a past overload."""

_FADE = 0.95
_STEEPEST = 0.5


class Gradient:
    """Netflix's Gradient2: compare each round trip with the average of the last ones.

    A drop has no round trip to compare. It counts as the steepest gradient, once a
    round trip, and is not in the average.

    Args:
        bounds: Where the limit begins and ends.
        tolerance: How many times the average a round trip may take, finite and >= 1.
        smoothing: The share of a sample in the new limit, > 0 and <= 1.
        queue: What is added to the limit each time, finite and >= 0.
        window: The samples that the average is taken of, an int >= 1.

    Raises:
        ValueError: An argument is not as described.

    Source: ``Gradient2Limit`` of Netflix's ``concurrency-limits``.
    """

    __slots__ = (
        "_average",
        "_bounds",
        "_count",
        "_cuts",
        "_queue",
        "_smoothing",
        "_tolerance",
        "_window",
        "limit",
    )

    limit: float
    """The limit with its fraction."""

    def __init__(
        self,
        bounds: Bounds,
        tolerance: float,
        smoothing: float,
        queue: float,
        window: int,
    ) -> None:
        if not is_finite(tolerance) or tolerance < 1:
            raise bad_argument("tolerance", tolerance, "finite and >= 1")
        if not is_finite(smoothing) or not 0 < smoothing <= 1:
            raise bad_argument("smoothing", smoothing, "> 0 and <= 1")
        if not is_finite(queue) or queue < 0:
            raise bad_argument("queue", queue, "finite and >= 0")
        if type(window) is not int or window < 1:
            raise bad_argument("window", window, "an int >= 1")
        self._bounds = bounds
        self._tolerance, self._smoothing = tolerance, smoothing
        self._queue, self._window = queue, window
        self._average, self._count = 0.0, 0
        self._cuts = Cuts()
        self.limit = float(bounds.initial)

    def add(
        self, now: float, round_trip: float, in_flight: int, *, dropped: bool
    ) -> None:
        """Learn from a call that ends *now*."""
        if dropped:
            gradient, counts = _STEEPEST, self._cuts.is_due(now, round_trip)
        else:
            gradient, counts = self._compare(round_trip), in_flight >= self.limit / 2
        if not counts:
            return
        aim = self.limit * gradient + self._queue
        self.limit = self._bounds.clamp(
            self.limit + (aim - self.limit) * self._smoothing
        )

    def _compare(self, round_trip: float) -> float:
        """Add a round trip to the average, and return the gradient."""
        self._count += 1
        is_warm = self._count > min(_WARM_UP, self._window)
        share = 2 / (self._window + 1) if is_warm else 1 / self._count
        self._average += (round_trip - self._average) * share
        average = self._average
        if average > _STALE * round_trip:
            self._average *= _FADE
        if round_trip <= 0:
            return 1.0
        return max(_STEEPEST, min(1.0, self._tolerance * average / round_trip))

    def __repr__(self) -> str:
        own = f"tolerance={self._tolerance!r}, smoothing={self._smoothing!r}"
        more = f"queue={self._queue!r}, window={self._window!r}"
        return f"gradient({self._bounds!r}, {own}, {more})"
