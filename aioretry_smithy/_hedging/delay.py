"""Compute the delay after which another request is sent."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TypeAlias

from .._errors import bad_argument, is_finite
from .._meant import check_unit
from .._request.keys import host_key
from .._request.per_key import OneForAll, PerKey
from .recent_times import FixedDelay, RecentTimes

Delays: TypeAlias = OneForAll[FixedDelay] | PerKey[RecentTimes]
"""Finds the delay for a request, and learns from its answer."""


class HedgingDelay(ABC):
    """The time to wait for an answer before another request is sent.

    The delay decides what hedging costs: a request that takes longer is sent twice. See
    :doc:`/explanation/hedging`.
    """

    @staticmethod
    def fixed(seconds: float) -> HedgingDelay:
        """Return a delay that is always the same.

        Args:
            seconds: The delay, finite and >= 0. With 0 every request is sent twice.

        Raises:
            ValueError: *seconds* is not as described.

        >>> HedgingDelay.fixed(0.05)
        HedgingDelay.fixed(0.05)
        """
        return _Fixed(seconds)

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
        """Make the object that finds the delays of one decorator, from its times."""


@dataclass(frozen=True, slots=True, repr=False)
class _Fixed(HedgingDelay):
    seconds: float

    def __post_init__(self) -> None:
        if not (is_finite(self.seconds) and self.seconds >= 0):
            raise bad_argument("seconds", self.seconds, "finite and >= 0")
        check_unit("delay", self.seconds)

    def _new_delays(self) -> Delays:
        return OneForAll("all", FixedDelay(self.seconds))

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
        if type(self.minimum_samples) is not int or self.minimum_samples < 1:
            raise bad_argument("minimum_samples", self.minimum_samples, "an int >= 1")
        if not (is_finite(self.window) and self.window > 0):
            raise bad_argument("window", self.window, "finite and > 0")
        if not (is_finite(self.floor) and self.floor >= 0):
            raise bad_argument("floor", self.floor, "finite and >= 0")

    def _new_delays(self) -> Delays:
        def make(key: str) -> RecentTimes:
            return RecentTimes(
                self.quantile, self.minimum_samples, self.window, self.floor
            )

        return PerKey("host", host_key, make, self)

    def __repr__(self) -> str:
        return (
            f"HedgingDelay.percentile({self.quantile!r},"
            f" minimum_samples={self.minimum_samples!r}, window={self.window!r},"
            f" floor={self.floor!r})"
        )
