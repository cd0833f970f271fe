"""Find quantiles of many numbers in little memory."""

from __future__ import annotations

import math
from typing import Final, Self

_WIDTH: Final = 0.01
_SCALE: Final = 1 / math.log1p(_WIDTH)
_MIDDLE: Final = 1 + _WIDTH / 2
_NOTHING: Final = -5000
"""The bucket of 0, far below that of any time that is measured."""


def bucket_of(value: float) -> int:
    """Return the bucket of a number >= 0: each is 1 % wide.

    >>> bucket_of(1.0), bucket_of(1.005), bucket_of(1.015)
    (0, 0, 1)
    """
    return math.floor(math.log(value) * _SCALE) if value > 1e-9 else _NOTHING


def value_of(bucket: int) -> float:
    """Return the middle of a bucket.

    >>> round(value_of(bucket_of(0.25)), 2)
    0.25
    """
    return 0.0 if bucket == _NOTHING else (1 + _WIDTH) ** bucket * _MIDDLE


class Histogram:
    """Counts numbers >= 0 in buckets that are 1 % wide, each with a weight.

    >>> histogram = Histogram()
    >>> for seconds in (0.1, 0.2, 0.4):
    ...     histogram.add(bucket_of(seconds), seconds, 1.0)
    >>> round(histogram.quantile(0.5), 2), histogram.largest
    (0.2, 0.4)
    """

    __slots__ = ("buckets", "largest")

    buckets: dict[int, float]
    """The weights in each bucket that is not empty."""

    largest: float | None

    def __init__(self) -> None:
        self.buckets = {}
        self.largest = None

    def add(self, bucket: int, value: float, weight: float) -> None:
        """Count a number, whose bucket is known."""
        self.buckets[bucket] = self.buckets.get(bucket, 0.0) + weight
        if self.largest is None or value > self.largest:
            self.largest = value

    def __iadd__(self, other: Histogram) -> Self:
        """Count what another one has counted."""
        for bucket, weight in other.buckets.items():
            self.buckets[bucket] = self.buckets.get(bucket, 0.0) + weight
        if other.largest is not None:
            self.largest = max(other.largest, self.largest or 0.0)
        return self

    def bucket_at(self, quantile: float) -> int | None:
        """Return the bucket in which a quantile lies; None where there is nothing."""
        rank = quantile * sum(self.buckets.values()) * (1 - 1e-12)
        counted = 0.0
        found = None
        for found in sorted(self.buckets):
            counted += self.buckets[found]
            if counted >= rank:
                break
        return found

    def quantile(self, quantile: float) -> float | None:
        """Return a number such that this part of all numbers is not above it.

        At most 1 % off; None where there is nothing.
        """
        bucket = self.bucket_at(quantile)
        if bucket is None or self.largest is None:
            return None
        return min(value_of(bucket), self.largest)
