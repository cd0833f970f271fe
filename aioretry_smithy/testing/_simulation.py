"""The settings of a simulation, the counts, and the results of each chain."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, TypeAlias

from .._context.options import UNSET
from .._errors import bad_argument, is_finite

Outage: TypeAlias = tuple[float, float, float]
"""An outage: start and length in seconds, and the share of capacity left."""

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
    numbers: Outage | None = _read("outage", outage, 3, _OUTAGE)
    return numbers


def read_restart(restart: object) -> Restart | None:
    """Read a restart, given as two numbers or as text.

    >>> read_restart("10:3")
    (10.0, 3.0)
    """
    numbers: Restart | None = _read("restart", restart, 2, _RESTART)
    return numbers


def _read(name: str, given: Any, many: int, expected: str) -> Any:
    """Return the numbers of a text or an iterable; None for None."""
    if given is None:
        return None
    parts = given.split(":") if isinstance(given, str) else given
    try:
        numbers = tuple(map(float, parts))
    except (TypeError, ValueError, OverflowError):
        numbers = ()
    if len(numbers) != many:
        raise bad_argument(name, given, expected)
    return numbers


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


_RECOVERED = 0.99
"""The share of calls that succeed when all is well again."""

_SHOWN = (
    *("calls", "attempts", "answered", "failed", "late", "by_replica", "shares"),
    *("success", "attempts_per_call", "load_in_outage", "seconds_to_recover"),
)
"""The counts and measures of a run that its dictionary has."""


class Counts:
    """Counts of calls and their outcomes, by second."""

    calls: Counter[int]
    """The calls that began, by second."""

    answered: Counter[int]
    """The calls of these that were answered with a status < 400."""

    by_replica: Counter[tuple[int, int]]
    """The requests that were sent, by replica, from 0, and second."""

    late: Counter[int]
    """The requests that were given up before the server came to them, by second."""

    def __init__(self) -> None:
        self.calls, self.answered = Counter(), Counter()
        self.by_replica, self.late = Counter(), Counter()


@dataclass(frozen=True, slots=True)
class SimulatedRun:
    """Counts the calls through one chain by second, and measures them.

    Each count is a tuple with an item for each second. A measure is 0.0 where no call
    began.

    >>> run = SimulatedRun((4, 4, 4), (4, 8, 4), (4, 0, 4), (1.0, 1.0, 0.2))
    >>> run.load_in_outage, run.seconds_to_recover
    (2.0, 0.0)
    """

    calls: tuple[int, ...]
    """The number of calls started, by second."""

    attempts: tuple[int, ...]
    """Number of sent requests."""

    answered: tuple[int, ...]
    """The number of successful calls (status < 400), by the second of their start."""

    outage: tuple[float, float, float] | None
    """The outage, as in the settings."""

    by_replica: tuple[tuple[int, ...], ...] = ()
    """Requests that were sent to each replica, those in trouble first."""

    restart: tuple[float, float] | None = None
    """The restart of the settings, which is an outage, too."""

    late: tuple[int, ...] = ()
    """The number of requests that were given up before the server came to them."""

    @classmethod
    def of(
        cls, processes: Sequence[Counts], settings: SimulationSettings
    ) -> SimulatedRun:
        """Add up what the processes have counted."""
        seconds = range(math.ceil(settings.duration))

        def by_second(name: str) -> tuple[int, ...]:
            counts = [getattr(process, name) for process in processes]
            return tuple(sum(each[second] for each in counts) for second in seconds)

        sent = [process.by_replica for process in processes]
        by_replica = tuple(
            tuple(sum(each[replica, second] for each in sent) for second in seconds)
            for replica in range(settings.replicas)
        )
        return cls(
            calls=by_second("calls"),
            attempts=tuple(map(sum, zip(*by_replica, strict=True))),
            answered=by_second("answered"),
            outage=settings.outage,
            by_replica=by_replica,
            restart=settings.restart,
            late=by_second("late"),
        )

    @property
    def late_after_restart(self) -> int:
        """Requests after the restart that waited for less than its backlog took.

        0 where the server was too slow for them before the restart, too, or has an
        outage besides: then that is no backlog of the restart.
        """
        if self.restart is None or self.outage is not None:
            return 0
        start, length = self.restart
        before = sum(self.late[: math.floor(start)])
        return 0 if before else sum(self.late[math.floor(start + length) :])

    @property
    def failed(self) -> tuple[int, ...]:
        """The number of failed calls, by the second of their start."""
        pairs = zip(self.calls, self.answered, strict=True)
        return tuple(calls - answered for calls, answered in pairs)

    @property
    def success(self) -> float:
        """The share of all calls that were answered."""
        return _ratio(self.answered, self.calls)

    @property
    def attempts_per_call(self) -> float:
        """Requests for each call, in the whole time."""
        return _ratio(self.attempts, self.calls)

    @property
    def load_in_outage(self) -> float | None:
        """Requests in the outage for each call that began in the outage; None without.

        1.0 is the load of clients that never retry.
        """
        if self._trouble() is None:
            return None
        outage = self._outage()
        return _ratio(self.attempts[outage], self.calls[outage])

    @property
    def shares(self) -> tuple[float, ...]:
        """The share of the requests that each replica got, those in trouble first.

        In the outage; without one in the whole time.
        """
        time = self._outage()
        sent = [sum(requests[time]) for requests in self.by_replica]
        return tuple(_ratio([each], sent) for each in sent)

    def _outage(self) -> slice:
        """Return the seconds that the outage touches, or all."""
        trouble = self._trouble()
        if trouble is None:
            return slice(None)
        start, end = trouble
        return slice(math.floor(start), math.ceil(end))

    def _trouble(self) -> tuple[float, float] | None:
        return time_of_trouble(self.outage, self.restart)

    @property
    def seconds_to_recover(self) -> float | None:
        """Seconds from the end of the outage until 99 % of calls succeed, for good.

        None if that does not happen in the time of the simulation, or there was no
        outage.
        """
        trouble = self._trouble()
        if trouble is None:
            return None
        _, end = trouble
        counts = zip(self.calls, self.answered, strict=True)
        begun = [(n, *counted) for n, counted in enumerate(counts) if counted[0]]
        bad = [n for n, calls, answered in begun if answered < _RECOVERED * calls]
        if not bad:
            return 0.0
        if bad[-1] == begun[-1][0]:
            return None
        return max(0.0, bad[-1] + 1 - end)

    def to_dict(self) -> dict[str, Any]:
        """Return the counts and the measures as plain JSON values."""
        return {name: _plain(getattr(self, name)) for name in _SHOWN}


@dataclass(frozen=True, slots=True)
class SimulationResult:
    """Holds the runs of a simulation, and its numbers."""

    settings: SimulationSettings
    """The numbers of the simulation."""

    runs: Mapping[str, SimulatedRun]
    """The runs, by the names of the chains."""

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain JSON values."""
        settings = {
            name: _plain(value) for name, value in asdict(self.settings).items()
        }
        runs = {name: run.to_dict() for name, run in self.runs.items()}
        return {"settings": settings, "runs": runs}


def _plain(value: object) -> Any:
    """Return lists in place of tuples."""
    return [*map(_plain, value)] if isinstance(value, tuple) else value


def _ratio(part: Iterable[int], whole: Iterable[int]) -> float:
    return sum(part) / max(1, sum(whole))
