"""Add up how long calls took, and what they spent the time on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .answers import Durations, Part
from .counts import ratio
from .histogram import Histogram, value_of
from .spending import source_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .seen_call import SeenCall

_SLOW: Final = 0.95


class Times:
    """How long calls took, and what they spent the time on, by how long they took."""

    __slots__ = ("durations", "spent")

    durations: Histogram
    spent: dict[int, dict[str, float]]
    """Seconds of the parts, by the bucket of the histogram."""

    def __init__(self) -> None:
        self.durations = Histogram()
        self.spent = {}

    def add(self, call: SeenCall, parts: Mapping[str, float], weight: float) -> None:
        """Add a call; one whose duration is not known counts in no quantile."""
        duration, bucket = call.duration, call.bucket
        if duration is None:
            return
        self.durations.add(bucket, duration, weight)
        spent = self.spent.get(bucket)
        if spent is None:
            spent = self.spent[bucket] = {}
        for part, seconds in parts.items():
            spent[part] = spent.get(part, 0.0) + seconds * weight

    def merge(self, other: Times) -> None:
        """Add what another one has."""
        self.durations += other.durations
        for bucket, parts in other.spent.items():
            spent = self.spent.setdefault(bucket, {})
            for part, seconds in parts.items():
                spent[part] = spent.get(part, 0.0) + seconds

    def quantiles(self) -> Durations:
        """Return those that are shown."""
        p50, p95, p99 = map(self.durations.quantile, (0.5, 0.95, 0.99))
        return Durations(p50, p95, p99, self.durations.largest)

    def slowest(self) -> tuple[float, float | None, int | None]:
        """Return how many calls are the slowest 5 %, from which time and bucket on."""
        bucket = self.durations.bucket_at(_SLOW)
        if bucket is None:
            return 0.0, None, None
        buckets = self.durations.buckets
        calls = sum(weight for each, weight in buckets.items() if each >= bucket)
        least = min(value_of(bucket), self.durations.largest or 0.0)
        return calls, least, bucket

    def parts(self) -> tuple[Part, ...]:
        """Return the parts, what takes the slowest calls the longest first."""
        _, _, bucket = self.slowest()
        every = _sum(self.spent.values())
        slow = _sum(
            spent
            for each, spent in self.spent.items()
            if bucket is not None and each >= bucket
        )
        total, slow_total = sum(every.values()), sum(slow.values())
        parts = [
            Part(
                *source_of(name),
                seconds,
                ratio(seconds, total),
                slow.get(name, 0.0),
                ratio(slow.get(name, 0.0), slow_total),
            )
            for name, seconds in every.items()
        ]
        parts.sort(key=_rank)
        return tuple(parts)


def _rank(part: Part) -> tuple[float, float, str]:
    """Order parts; those that differ by what rounding leaves have the same rank."""
    slow, every = round(part.slowest_seconds, 6), round(part.seconds, 6)
    return -slow, -every, f"{part.part} {part.source}"


def _sum(spent: Iterable[Mapping[str, float]]) -> dict[str, float]:
    total: dict[str, float] = {}
    for parts in spent:
        for part, seconds in parts.items():
            total[part] = total.get(part, 0.0) + seconds
    return total
