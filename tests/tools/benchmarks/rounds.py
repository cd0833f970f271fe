"""Measuring in turns, and what may be concluded from it."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from statistics import median
from typing import NamedTuple

RESAMPLES = 1000


class Estimate(NamedTuple):
    """A median, and where it would lie in 95 of 100 repetitions."""

    median: float
    low: float
    high: float

    def reaches(self, limit: float) -> bool:
        """Whether it may well be no more than *limit*: the interval begins below."""
        return self.low <= limit


def order_of(names: Sequence[str], number: int) -> list[str]:
    """Return the names in the order of a round: each round begins one further on."""
    start = number % len(names)
    return [*names[start:], *names[:start]]


async def interleaved(
    measure: Mapping[str, Callable[[], Awaitable[float]]], rounds: int
) -> dict[str, list[float]]:
    """Measure A B C, B C A, C A B, ...; return what each one brought, by round.

    A machine that becomes slower or faster meanwhile does so for all alike, and nobody
    always comes after the same pause.
    """
    samples: dict[str, list[float]] = {name: [] for name in measure}
    for number in range(rounds):
        for name in order_of(list(measure), number):
            samples[name].append(await measure[name]())
    return samples


def ratios(samples: Sequence[float], base: Sequence[float]) -> list[float]:
    """Return the ratios to the base, round by round."""
    return [ours / theirs for ours, theirs in zip(samples, base, strict=True)]


def differences(samples: Sequence[float], base: Sequence[float]) -> list[float]:
    """Return what comes on top of the base, round by round."""
    return [ours - theirs for ours, theirs in zip(samples, base, strict=True)]


def ratios_of_least(samples: Sequence[float], base: Sequence[float]) -> list[float]:
    """Return the one ratio of the least of all rounds: other work can only add."""
    return [min(samples) / min(base)]


def estimate(values: Sequence[float], seed: int = 7) -> Estimate:
    """Return the median and its 95 % interval, by bootstrap: the same on each run."""
    chance = random.Random(seed)
    medians = sorted(
        median(chance.choices(values, k=len(values))) for _ in range(RESAMPLES)
    )
    tail = RESAMPLES // 40
    return Estimate(median(values), medians[tail], medians[-1 - tail])
