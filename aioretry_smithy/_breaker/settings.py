"""The settings of a circuit breaker."""

from __future__ import annotations

from dataclasses import dataclass, fields

from .._errors import bad_argument, check_int, is_finite

_SECONDS = (
    "trial_request_interval",
    "circuit_open_window",
    "counter_sliding_window",
    "counter_update_interval",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CircuitBreakerSettings:
    """The settings that :class:`CircuitBreaker` describes.

    Raises:
        ValueError: One of them is out of range.
    """

    failure_rate_threshold: float
    minimum_request_threshold: int
    trial_request_interval: float
    circuit_open_window: float
    counter_sliding_window: float
    counter_update_interval: float

    def __post_init__(self) -> None:
        threshold = self.failure_rate_threshold
        if not is_finite(threshold) or not 0 < threshold <= 1:
            raise bad_argument("failure_rate_threshold", threshold, "> 0 and <= 1")
        check_int("minimum_request_threshold", self.minimum_request_threshold, 0)
        for name in _SECONDS:
            seconds = getattr(self, name)
            if not is_finite(seconds) or seconds <= 0:
                raise bad_argument(name, seconds, "> 0 and finite")
        window, interval = self.counter_sliding_window, self.counter_update_interval
        if window <= interval:
            expected = f"> counter_update_interval, {interval!r}"
            raise bad_argument("counter_sliding_window", window, expected)

    def __str__(self) -> str:
        settings = ((field.name, getattr(self, field.name)) for field in fields(self))
        return ", ".join(f"{name}={value!r}" for name, value in settings)
