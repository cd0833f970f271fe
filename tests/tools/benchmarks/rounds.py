"""Measuring in turns, and what may be concluded from it."""

import random
from statistics import median
from typing import NamedTuple

RESAMPLES = 1000


class Estimate(NamedTuple):
    """A median, and where it would lie in 95 of 100 repetitions."""

    median: float
    low: float
    high: float

    def reaches(self, limit):
        """Whether it may well be no more than *limit*: the interval begins below."""
        return self.low <= limit


def order_of(names, number):
    """Return the names in the order of a round: each round begins one further on."""
    start = number % len(names)
    return [*names[start:], *names[:start]]


async def interleaved(measure, rounds):
    """Measure A B C, B C A, C A B, ...; return what each one brought, by round.

    A machine that becomes slower or faster meanwhile does so for all alike, and nobody
    always comes after the same pause.
    """
    samples = {name: [] for name in measure}
    for number in range(rounds):
        for name in order_of(list(measure), number):
            samples[name].append(await measure[name]())
    return samples


def ratios(samples, base):
    """Return the ratios to the base, round by round."""
    return [ours / theirs for ours, theirs in zip(samples, base, strict=True)]


def differences(samples, base):
    """Return what comes on top of the base, round by round."""
    return [ours - theirs for ours, theirs in zip(samples, base, strict=True)]


def ratios_of_least(samples, base):
    """Return the one ratio of the least of all rounds: other work can only add."""
    return [min(samples) / min(base)]


def estimate(values, seed=7):
    """Return the median and its 95 % interval, by bootstrap: the same on each run."""
    chance = random.Random(seed)
    medians = sorted(
        median(chance.choices(values, k=len(values))) for _ in range(RESAMPLES)
    )
    tail = RESAMPLES // 40
    return Estimate(median(values), medians[tail], medians[-1 - tail])
