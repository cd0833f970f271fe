"""Say when an endpoint is to be left alone, and for how long."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

from .._breaker.strategy import CircuitBreakerStrategy
from .._errors import bad_argument, check_int, check_positive, is_finite
from .._frozen import extensible


@extensible
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class OutlierDetection:
    """When an endpoint of a group is to be left alone, and for how long.

    An endpoint is *ejected* by failures in a row, refused connections, or a rate of
    failures; statuses of 5xx and exceptions count. It is out for
    ``min(max_ejection_time, ejection_time * 2 ** n)`` seconds, where n trials have
    failed, times 1 to 1.25. Then one request tries it. Requests that began before it
    was ejected say nothing any more. After Envoy's outlier detection.

    Args:
        consecutive_failures: Failures in a row, >= 1.
        connect_failures: Failures in a row to connect, >= 1.
        failure_rate_threshold: The share of failures that is too much, from 0 to 1.
        minimum_request_threshold: Requests before the share counts, >= 1.
        counter_sliding_window: Seconds in which they are counted, > 0.
        ejection_time: Seconds that it is out at first, > 0.
        max_ejection_time: The most seconds, >= *ejection_time*.
        max_ejected: The share of endpoints that may be out at once, from 0 to 1; at
            least one of two or more, never all of them.
        strategy: Says what a failure is; None for
            :meth:`CircuitBreakerStrategy.on_server_error_status`.

    Raises:
        ValueError: An argument is not as described.

    >>> OutlierDetection(consecutive_failures=3).ejection_time
    5.0
    """

    consecutive_failures: int = 5
    connect_failures: int = 1
    failure_rate_threshold: float = 0.5
    minimum_request_threshold: int = 10
    counter_sliding_window: float = 20.0
    ejection_time: float = 5.0
    max_ejection_time: float = 60.0
    max_ejected: float = 0.5
    strategy: CircuitBreakerStrategy | None = None

    def __post_init__(self) -> None:
        check_int("consecutive_failures", self.consecutive_failures, 1)
        check_int("connect_failures", self.connect_failures, 1)
        check_int("minimum_request_threshold", self.minimum_request_threshold, 1)
        check_positive("counter_sliding_window", self.counter_sliding_window)
        check_positive("ejection_time", self.ejection_time)
        check_positive("max_ejection_time", self.max_ejection_time)
        for name in ("failure_rate_threshold", "max_ejected"):
            share = getattr(self, name)
            if not (is_finite(share) and 0 <= share <= 1):
                raise bad_argument(name, share, "from 0 to 1")
        if self.max_ejection_time < self.ejection_time:
            expected = f">= ejection_time, {self.ejection_time}"
            raise bad_argument("max_ejection_time", self.max_ejection_time, expected)
        if not (
            self.strategy is None or isinstance(self.strategy, CircuitBreakerStrategy)
        ):
            expected = "a CircuitBreakerStrategy or None"
            raise bad_argument("strategy", self.strategy, expected)

    def __repr__(self) -> str:
        given = (
            f"{each.name}={getattr(self, each.name)!r}"
            for each in fields(self)
            if getattr(self, each.name) != getattr(_USUAL, each.name)
        )
        return f"OutlierDetection({', '.join(given)})"

    def most_ejected(self, number: int) -> int:
        """Return how many of a number of endpoints may be out at once.

        >>> [OutlierDetection().most_ejected(number) for number in (1, 2, 3, 4)]
        [0, 1, 1, 2]
        """
        if number < 2 or not self.max_ejected:
            return 0
        return min(number - 1, max(1, int(self.max_ejected * number)))

    def seconds_out(self, times: int, dice: float) -> float:
        """Return how long an endpoint is out for the n-th time, from 1.

        Args:
            times: How often it was ejected since it was well.
            dice: A number in [0, 1).
        """
        doublings = min(times - 1, 60)
        seconds = min(self.max_ejection_time, self.ejection_time * 2.0**doublings)
        return seconds * (1.0 + dice / 4)


_USUAL: Final = OutlierDetection()
