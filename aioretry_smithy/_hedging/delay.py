"""Compute the delay after which a hedge is sent."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from .. import _checks as check
from .._clock import loop_time
from .._errors import bad_argument, check_unit, is_finite
from .._request.keys import OneForAll, PerKey, host_key

_GROWTH: Final = 1.05
"""The ratio of the upper bounds of neighbouring buckets.

A quantile is the upper end of a bucket: never shorter than the true one, and less than
5 % longer. There are buckets for any time, so none is too long to be counted.
"""

_PER_BUCKET: Final = 1 / math.log(_GROWTH)

_SHORTEST: Final = 1e-6
"""The logarithm needs a time above 0, and no clock tells shorter ones apart."""

_SEEN_ENOUGH: Final = 100
"""The quantile is found anew when there is a hundredth more of the times."""


class HedgingDelay(ABC):
    """The time to wait for an answer before another request is sent.

    The delay decides what hedging costs: a request that takes longer is sent twice. See
    :doc:`/explanation/hedging`.
    """

    @staticmethod
    def fixed(seconds: float) -> HedgingDelay:
        """Return a fixed delay.

        Args:
            seconds: The delay, finite and >= 0. With 0 every request is sent twice.

        Raises:
            ValueError: *seconds* is not as described.

        >>> HedgingDelay.fixed(0.05)
        HedgingDelay.fixed(0.05)
        """
        return FixedDelay(seconds)

    @staticmethod
    def percentile(
        quantile: float = 0.95,
        *,
        minimum_samples: int = 100,
        window: float = 60.0,
        floor: float = 0.001,
    ) -> HedgingDelay:
        """Return a delay that only a small share of the requests to a host exceed.

        With 0.95 about one request in twenty is sent twice, however fast the host is
        today. Each host and port has a delay of its own, for the 1024 most recently
        used. It is found from the time to the headers of good answers; a first request
        that was superseded counts with its time so far, failures and other superseded
        requests do not count. The delay is less than 5 % longer than the true quantile,
        and never shorter.

        Args:
            quantile: The share of the requests that are answered before the delay, > 0
                and < 1.
            minimum_samples: Answers that it takes to find a delay, an int >= 1; with
                fewer there is no hedge.
            window: Seconds, finite and > 0. The answers of the last one to two windows
                count.
            floor: The shortest delay in seconds, finite and >= 0.

        Raises:
            ValueError: An argument is not as described.

        Source: Dean and Barroso, "The Tail at Scale"; Finagle's
        ``BackupRequestFilter``.

        >>> HedgingDelay.percentile(0.98)
        HedgingDelay.percentile(0.98, minimum_samples=100, window=60.0, floor=0.001)
        """
        return _Percentile(quantile, minimum_samples, window, floor)

    @abstractmethod
    def _new_delays(self) -> Delays:
        """Make the estimator of delays for a single decorator."""


@dataclass(frozen=True, slots=True, repr=False)
class FixedDelay(HedgingDelay):
    """The same delay for all requests."""

    seconds: float

    def __post_init__(self) -> None:
        check.not_negative("seconds", self.seconds)
        check_unit("delay", self.seconds)

    def _new_delays(self) -> Delays:
        return OneForAll("all", self)

    def note(self, seconds: float) -> None:
        """Ignore the latency: the delay is fixed."""

    def delay(self) -> float:
        """Return the seconds."""
        return self.seconds

    def __repr__(self) -> str:
        return f"HedgingDelay.fixed({self.seconds!r})"


@dataclass(frozen=True, slots=True, repr=False)
class _Percentile(HedgingDelay):
    quantile: float
    minimum_samples: int
    window: float
    floor: float

    def __post_init__(self) -> None:
        if not (is_finite(self.quantile) and 0 < self.quantile < 1):
            raise bad_argument("quantile", self.quantile, "> 0 and < 1")
        check.integer("minimum_samples", self.minimum_samples, 1)
        check.positive("window", self.window)
        check.not_negative("floor", self.floor)

    def _new_delays(self) -> Delays:
        return PerKey("host", host_key, lambda key: RecentTimes(self), self)

    def __repr__(self) -> str:
        return (
            f"HedgingDelay.percentile({self.quantile!r},"
            f" minimum_samples={self.minimum_samples!r}, window={self.window!r},"
            f" floor={self.floor!r})"
        )


@dataclass(slots=True, eq=False)
class RecentTimes:
    """The times of the last one to two windows, counted in logarithmic buckets.

    Two windows take turns: one gathers, the one before it is complete.
    """

    _settings: _Percentile
    _now: Counter[int] = field(init=False, default_factory=Counter)
    _past: Counter[int] = field(init=False, default_factory=Counter)
    _size: int = field(init=False, default=0)
    _past_size: int = field(init=False, default=0)
    _ends: float = field(init=False)
    _found: float = field(init=False, default=0.0)
    _found_of: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self._ends = loop_time() + self._settings.window

    def note(self, seconds: float) -> None:
        """Add a time."""
        self._turn()
        self._now[math.ceil(math.log(max(seconds, _SHORTEST)) * _PER_BUCKET)] += 1
        self._size += 1

    def delay(self) -> float | None:
        """Return the quantile in seconds; None while there are too few times."""
        self._turn()
        size = self._size + self._past_size
        if size < self._settings.minimum_samples:
            return None
        if (size - self._found_of) * _SEEN_ENOUGH > self._found_of:
            self._found, self._found_of = self._find(size), size
        return max(self._found, self._settings.floor)

    def _find(self, size: int) -> float:
        rank = math.ceil(self._settings.quantile * size)
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
        late, window = loop_time() - self._ends, self._settings.window
        if late < 0:
            return
        is_next = late < window
        self._past, self._past_size = self._now, self._size
        if not is_next:
            self._past, self._past_size = Counter(), 0
        self._now, self._size = Counter(), 0
        self._ends += window if is_next else late + window
        self._found_of = 0


Delays: TypeAlias = OneForAll[FixedDelay] | PerKey[RecentTimes]
"""Finds the delay for a request, and learns from its answer."""
