"""Hold the numbers of a simulation, checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from .._errors import bad_argument, is_finite

Outage: TypeAlias = tuple[float, float, float]
"""Its start, its length in seconds, and the part of the capacity left."""

_MOST_CLIENTS = 1_000_000
"""Each is a session with a chain of its own; so many standard ones take 15 GB."""

_HIGHEST_RATE = 1_000_000
"""At the highest floats time stands still between two calls, and calls pile up."""

_OUTAGE = (
    "(start, length, capacity) or 'start:length:capacity' with start >= 0, length > 0 "
    "and capacity from 0 to 1, over within the duration; or None"
)


@dataclass(frozen=True, slots=True)
class SimulationSettings:
    """The numbers of a simulation; :func:`simulate` says what each of them is.

    Raises:
        ValueError: One of them is out of range.
    """

    clients: int
    rate: float
    capacity: float
    outage: tuple[float, float, float] | None
    duration: float
    error_rate: float
    seed: int

    def __post_init__(self) -> None:
        is_number = type(self.clients) is int
        if not (is_number and 1 <= self.clients <= _MOST_CLIENTS):
            expected = f"an integer >= 1 and <= {_MOST_CLIENTS}"
            raise bad_argument("clients", self.clients, expected)
        for name in ("rate", "capacity", "duration"):
            value = getattr(self, name)
            if not (is_finite(value) and value > 0):
                raise bad_argument(name, value, "finite and > 0")
        if self.rate > _HIGHEST_RATE:
            raise bad_argument("rate", self.rate, f"> 0 and <= {_HIGHEST_RATE}")
        if not (is_finite(self.error_rate) and 0 <= self.error_rate <= 1):
            raise bad_argument("error_rate", self.error_rate, ">= 0 and <= 1")
        if type(self.seed) is not int:
            raise bad_argument("seed", self.seed, "an integer")
        if self.outage is not None:
            start, length, capacity = self.outage
            is_over = start + length <= self.duration
            if not (start >= 0 and length > 0 and 0 <= capacity <= 1 and is_over):
                raise bad_argument("outage", self.outage, _OUTAGE)


def read_outage(outage: object) -> Outage | None:
    """Read an outage, given as three numbers or as text.

    >>> read_outage("10:20:0.2")
    (10.0, 20.0, 0.2)
    """
    if outage is None:
        return None
    parts: object = outage.split(":") if isinstance(outage, str) else outage
    try:
        start, length, capacity = map(float, parts)  # type: ignore[call-overload]
    except (TypeError, ValueError, OverflowError):
        raise bad_argument("outage", outage, _OUTAGE) from None
    return start, length, capacity
