"""Find a quantile of the times that requests took of late."""

from __future__ import annotations

import math
from collections import Counter
from typing import Final

from .._clock import loop_time

_GROWTH: Final = 1.05
"""How many times as long as the bucket before it a bucket reaches.

A quantile is the upper end of a bucket: never shorter than the true one, and less than
5 % longer. There are buckets for any time, so none is too long to be counted.
"""

_PER_BUCKET: Final = 1 / math.log(_GROWTH)

_SHORTEST: Final = 1e-6
"""The logarithm needs a time above 0, and no clock tells shorter ones apart."""

_SEEN_ENOUGH: Final = 100
"""The quantile is found anew when there is a hundredth more of the times."""


class RecentTimes:
    """The times of the last one to two windows, counted in logarithmic buckets.

    Two windows take turns: one gathers, the one before it is complete.

    Args:
        quantile: Which to find, > 0 and < 1.
        minimum_samples: Times that it takes to find it.
        window: Seconds that a window lasts.
        floor: Seconds that the answer is at least.
    """

    __slots__ = (
        "_ends",
        "_floor",
        "_found",
        "_found_of",
        "_minimum_samples",
        "_now",
        "_past",
        "_past_size",
        "_quantile",
        "_size",
        "_window",
    )

    def __init__(
        self, quantile: float, minimum_samples: int, window: float, floor: float
    ) -> None:
        self._quantile = quantile
        self._minimum_samples = minimum_samples
        self._window = window
        self._floor = floor
        self._now: Counter[int] = Counter()
        self._past: Counter[int] = Counter()
        self._size = self._past_size = 0
        self._ends = loop_time() + window
        self._found, self._found_of = 0.0, 0

    def note(self, seconds: float) -> None:
        """Add a time."""
        self._turn()
        self._now[math.ceil(math.log(max(seconds, _SHORTEST)) * _PER_BUCKET)] += 1
        self._size += 1

    def delay(self) -> float | None:
        """Return the quantile in seconds; None while there are too few times."""
        self._turn()
        size = self._size + self._past_size
        if size < self._minimum_samples:
            return None
        if (size - self._found_of) * _SEEN_ENOUGH > self._found_of:
            self._found, self._found_of = self._find(size), size
        return max(self._found, self._floor)

    def _find(self, size: int) -> float:
        rank = math.ceil(self._quantile * size)
        counts = self._now + self._past
        buckets = iter(sorted(counts))
        bucket = next(buckets)
        counted = counts[bucket]
        while counted < rank:
            bucket = next(buckets)
            counted += counts[bucket]
        return _GROWTH**bucket

    def _turn(self) -> None:
        """Let the next window begin, if it is time."""
        late = loop_time() - self._ends
        if late < 0:
            return
        is_next = late < self._window
        self._past, self._past_size = self._now, self._size
        if not is_next:
            self._past, self._past_size = Counter(), 0
        self._now, self._size = Counter(), 0
        self._ends += self._window if is_next else late + self._window
        self._found_of = 0


class FixedDelay:
    """The same delay for all requests."""

    __slots__ = ("_seconds",)

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def note(self, seconds: float) -> None:
        """Learn nothing."""

    def delay(self) -> float:
        """Return the seconds."""
        return self._seconds
