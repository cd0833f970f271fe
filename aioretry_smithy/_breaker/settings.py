"""The settings of a circuit breaker, which may change while it works."""

from __future__ import annotations

import logging
from dataclasses import dataclass, fields, replace
from typing import Final, TypedDict, Unpack

from .._errors import bad_argument, call_it, check_int, is_finite, nearest
from .._policies.backoff import Backoff

_logger = logging.getLogger("aioretry_smithy")

_SECONDS: Final = (
    "trial_request_interval",
    "counter_sliding_window",
    "counter_update_interval",
)

_USUAL: Final = {"consecutive_failures": None, "success_threshold": 1}
"""Default values of settings, omitted from the representation."""

_UNUSUAL: Final = object()

_USUAL_WINDOW: Final = 10.0
"""The open window in seconds, where a backoff has not said any."""


class CircuitBreakerChanges(TypedDict, total=False):
    """The keyword arguments of :meth:`.CircuitBreaker.update`."""

    failure_rate_threshold: float
    minimum_request_threshold: int
    consecutive_failures: int | None
    success_threshold: int
    trial_request_interval: float
    circuit_open_window: float | Backoff
    counter_sliding_window: float
    counter_update_interval: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CircuitBreakerSettings:
    """The settings that :class:`.CircuitBreaker` describes.

    Raises:
        ValueError: One of them is out of range.
    """

    failure_rate_threshold: float
    minimum_request_threshold: int
    consecutive_failures: int | None
    success_threshold: int
    trial_request_interval: float
    circuit_open_window: float | Backoff
    counter_sliding_window: float
    counter_update_interval: float

    def __post_init__(self) -> None:
        threshold = self.failure_rate_threshold
        if not is_finite(threshold) or not 0 < threshold <= 1:
            raise bad_argument("failure_rate_threshold", threshold, "> 0 and <= 1")
        check_int("minimum_request_threshold", self.minimum_request_threshold, 0)
        _check_row(self.consecutive_failures)
        check_int("success_threshold", self.success_threshold, 1)
        for name in _SECONDS:
            seconds = getattr(self, name)
            if not is_finite(seconds) or seconds <= 0:
                raise bad_argument(name, seconds, "> 0 and finite")
        _check_open_window(self.circuit_open_window)
        window, interval = self.counter_sliding_window, self.counter_update_interval
        if window <= interval:
            expected = f"> counter_update_interval, {interval!r}"
            raise bad_argument("counter_sliding_window", window, expected)

    def __str__(self) -> str:
        settings = ((field.name, getattr(self, field.name)) for field in fields(self))
        return ", ".join(
            f"{name}={value!r}"
            for name, value in settings
            # Texts of errors have it, and stay as they were for who asks for neither.
            if _USUAL.get(name, _UNUSUAL) != value
        )

    def changed(
        self, **changes: Unpack[CircuitBreakerChanges]
    ) -> CircuitBreakerSettings:
        """Return these settings with some of them changed.

        Raises:
            ValueError: One is out of range, or there is none of its name.
        """
        known = [field.name for field in fields(self)]
        for name in changes:
            if name not in known:
                expected = f"a setting that may change{nearest(name, known)}"
                raise bad_argument("argument", name, expected)
        return replace(self, **changes)

    def open_window(self, number: int, last: float | None, owner: str) -> float:
        """Return the seconds for which a circuit is to be open.

        Args:
            number: Which time it is in a row, from 1.
            last: The seconds before, which stay where a backoff has none to say.
            owner: The circuit breaker, for logs.
        """
        window = self.circuit_open_window
        if not isinstance(window, Backoff):
            return window
        try:
            seconds = _asked(window, number)
        except Exception:
            message = "%s: its open window stays: %r raised"
            _logger.warning(message, owner, window, exc_info=True)
            seconds = None
        if seconds is not None:
            return seconds
        return _USUAL_WINDOW if last is None else last


def _asked(backoff: Backoff, number: int) -> float | None:
    seconds = backoff.next_delay(number)
    if seconds is None or (is_finite(seconds) and seconds >= 0):
        return seconds
    raise bad_argument("next_delay", seconds, "seconds, finite and >= 0, or None")


def _check_row(number: object) -> None:
    if number is not None and (type(number) is not int or number < 1):
        raise bad_argument("consecutive_failures", number, "an int >= 1, or None")


def _check_open_window(window: object) -> None:
    if isinstance(window, Backoff) or (is_finite(window) and window > 0):
        return
    expected = f"> 0 and finite, or a Backoff{call_it(window, Backoff)}"
    raise bad_argument("circuit_open_window", window, expected)
