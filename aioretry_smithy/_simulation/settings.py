"""Hold the numbers of a simulation, and check them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from .._context.context import UNSET
from .._errors import bad_argument, is_finite

if TYPE_CHECKING:
    from collections.abc import Iterable

Outage: TypeAlias = tuple[float, float, float]
"""Its start, its length in seconds, and the part of the capacity left."""

Restart: TypeAlias = tuple[float, float]
"""When the server goes away, and for how many seconds."""

USUAL_OUTAGE: Final = (10.0, 20.0, 0.2)

_MOST_CLIENTS = 1_000_000
"""Each is a session with a chain of its own; so many standard ones take 15 GB."""

_MOST_REPLICAS = 1000

_HIGHEST_RATE = 1_000_000
"""At the highest floats time stands still between two calls, and calls pile up."""

_OUTAGE = (
    "(start, length, capacity) or 'start:length:capacity' with start >= 0, length > 0 "
    "and capacity from 0 to 1, over within the duration; or None"
)
_RESTART = (
    "(start, length) or 'start:length' with start >= 0 and length > 0, over within the "
    "duration; or None"
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
    replicas: int = 1
    dead: int = 0
    slow: float = 1.0
    failing: int = 0
    restart: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        _check_count("clients", self.clients, _MOST_CLIENTS)
        _check_count("replicas", self.replicas, _MOST_REPLICAS)
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
        if self.restart is not None:
            start, length = self.restart
            if not (start >= 0 and length > 0 and start + length <= self.duration):
                raise bad_argument("restart", self.restart, _RESTART)
        self._check_trouble()

    def _check_trouble(self) -> None:
        if not (is_finite(self.slow) and self.slow >= 1):
            raise bad_argument("slow", self.slow, "finite and >= 1")
        left = self.replicas
        for name in ("dead", "failing"):
            number = getattr(self, name)
            if type(number) is not int or number < 0:
                raise bad_argument(name, number, "an integer >= 0")
            if number > left:
                of = "replicas" if left == self.replicas else "replicas left"
                raise bad_argument(name, number, f"<= {of}, {left}")
            left -= number
        if self.slow > 1 and not left:
            expected = f"1 where dead and failing are all of {self.replicas} replicas"
            raise bad_argument("slow", self.slow, expected)
        if self.outage is None and self.has_trouble:
            expected = "a time when replicas are dead, failing or slow"
            raise bad_argument("outage", self.outage, expected)

    @property
    def has_trouble(self) -> bool:
        """Whether some of the replicas are dead, failing or slow in the outage."""
        return self.dead > 0 or self.failing > 0 or self.slow > 1

    @property
    def share_left(self) -> float:
        """The part of the capacity that is left in the outage; 1.0 without one."""
        if self.has_trouble:
            out = self.dead + self.failing + (1 - 1 / self.slow)
            return (self.replicas - out) / self.replicas
        return 1.0 if self.outage is None else self.outage[2]

    def share_at(self, second: float) -> float:
        """Return the part of the capacity that there is at a time."""
        is_outage = _is_in(self.outage, second)
        share = self.share_left if is_outage else 1.0
        if not _is_in(self.restart, second):
            return share
        return share - (self._left_of_first if is_outage else 1.0) / self.replicas

    @property
    def _left_of_first(self) -> float:
        """The share of capacity that the outage leaves to the first replica."""
        if not self.has_trouble:
            return self.share_left
        return 0.0 if self.dead or self.failing else 1 / self.slow


def read_outage(outage: object, restart: Restart | None = None) -> Outage | None:
    """Read an outage, given as three numbers or as text.

    A restart takes the place of one that is not given.

    >>> read_outage("10:20:0.2")
    (10.0, 20.0, 0.2)
    """
    if outage is UNSET:
        return USUAL_OUTAGE if restart is None else None
    if outage is None:
        return None
    try:
        start, length, capacity = _numbers(outage)
    except (TypeError, ValueError, OverflowError):
        raise bad_argument("outage", outage, _OUTAGE) from None
    return start, length, capacity


def read_restart(restart: object) -> Restart | None:
    """Read a restart, given as two numbers or as text.

    >>> read_restart("10:3")
    (10.0, 3.0)
    """
    if restart is None:
        return None
    try:
        start, length = _numbers(restart)
    except (TypeError, ValueError, OverflowError):
        raise bad_argument("restart", restart, _RESTART) from None
    return start, length


def _numbers(given: object) -> Iterable[float]:
    parts: object = given.split(":") if isinstance(given, str) else given
    return map(float, parts)  # type: ignore[call-overload,no-any-return]


def time_of_trouble(
    outage: Outage | None, restart: Restart | None
) -> tuple[float, float] | None:
    """Return when the first trouble begins and the last one ends, if there is any."""
    times = [each[:2] for each in (outage, restart) if each is not None]
    if not times:
        return None
    return min(start for start, _ in times), max(map(sum, times))


def _is_in(times: tuple[float, ...] | None, second: float) -> bool:
    return times is not None and times[0] <= second < times[0] + times[1]


def _check_count(name: str, number: object, most: int) -> None:
    if type(number) is not int or not 1 <= number <= most:
        raise bad_argument(name, number, f"an integer >= 1 and <= {most}")
