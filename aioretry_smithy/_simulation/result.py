"""Hold the numbers of a simulation and its counts, and say how the chains did."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from .._errors import bad_argument, is_finite

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

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

_RECOVERED = 0.99
"""The share of calls that succeed when all is well again."""

_HEAD = "chain", "load", "recovery", "answered", "attempts", "answered, over time"
_BLOCKS = "▁▂▃▄▅▆▇█"
_CELLS = 20
"""How many characters the whole time takes."""

LEGEND = """\
load: requests in the outage, for each call that began in it
recovery: seconds after the outage until 99 % of the calls are answered, for good
attempts: requests for each call, in the whole time"""


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


class Counts:
    """Counts calls, and what becomes of them, by second."""

    calls: Counter[int]
    """The calls that began, by second."""

    answered: Counter[int]
    """The calls of these that were answered with a status < 400."""

    attempts: Counter[int]
    """The requests that were sent, by second."""

    def __init__(self) -> None:
        self.calls, self.answered, self.attempts = Counter(), Counter(), Counter()


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
    """Calls that began."""

    attempts: tuple[int, ...]
    """Requests that were sent."""

    answered: tuple[int, ...]
    """Calls that began in that second and got a status < 400, then or later."""

    outage: tuple[float, float, float] | None
    """The outage, as in the settings."""

    @classmethod
    def of(
        cls, processes: Sequence[Counts], settings: SimulationSettings
    ) -> SimulatedRun:
        """Add up what the processes have counted."""

        def by_second(counts: list[Counter[int]]) -> tuple[int, ...]:
            seconds = range(math.ceil(settings.duration))
            return tuple(sum(each[second] for each in counts) for second in seconds)

        return cls(
            calls=by_second([process.calls for process in processes]),
            attempts=by_second([process.attempts for process in processes]),
            answered=by_second([process.answered for process in processes]),
            outage=settings.outage,
        )

    @property
    def failed(self) -> tuple[int, ...]:
        """Calls that began in that second and failed, then or later."""
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
        """Requests in the outage for each call that began in it; None without one.

        1.0 is the load of clients that never retry.
        """
        if self.outage is None:
            return None
        start, length, _ = self.outage
        outage = slice(math.floor(start), math.ceil(start + length))
        return _ratio(self.attempts[outage], self.calls[outage])

    @property
    def seconds_to_recover(self) -> float | None:
        """Seconds from the end of the outage until 99 % of calls succeed, for good.

        None if that does not happen in the time of the simulation, or there was no
        outage.
        """
        if self.outage is None:
            return None
        start, length, _ = self.outage
        counts = zip(self.calls, self.answered, strict=True)
        begun = [(n, *counted) for n, counted in enumerate(counts) if counted[0]]
        bad = [n for n, calls, answered in begun if answered < _RECOVERED * calls]
        if not bad:
            return 0.0
        if bad[-1] == begun[-1][0]:
            return None
        return max(0.0, bad[-1] + 1 - (start + length))

    def to_dict(self) -> dict[str, Any]:
        """Return the counts and the measures as plain JSON values."""
        return {
            "calls": list(self.calls),
            "attempts": list(self.attempts),
            "answered": list(self.answered),
            "failed": list(self.failed),
            "success": self.success,
            "attempts_per_call": self.attempts_per_call,
            "load_in_outage": self.load_in_outage,
            "seconds_to_recover": self.seconds_to_recover,
        }


@dataclass(frozen=True, slots=True)
class SimulationResult:
    """Holds the runs of a simulation, and its numbers."""

    settings: SimulationSettings
    """The numbers of the simulation."""

    runs: Mapping[str, SimulatedRun]
    """The runs, by the names of the chains."""

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain JSON values."""
        settings = asdict(self.settings)
        outage = self.settings.outage
        settings["outage"] = None if outage is None else list(outage)
        runs = {name: run.to_dict() for name, run in self.runs.items()}
        return {"settings": settings, "runs": runs}


def _ratio(part: Iterable[int], whole: Iterable[int]) -> float:
    return sum(part) / max(1, sum(whole))


def conditions(settings: SimulationSettings) -> tuple[str, str]:
    """Say in two sentences what was simulated."""
    calls = (
        f"{settings.clients} clients make {settings.rate:g} calls a second for"
        f" {settings.duration:g} s."
    )
    served = f"The server can answer {settings.capacity:g} a second"
    if settings.outage is not None:
        start, length, share = settings.outage
        end = start + length
        served += f", from second {start:g} to {end:g} only {share:.0%} of that"
    return calls, f"{served}."


def rows(result: SimulationResult) -> list[tuple[str, ...]]:
    """Return the head of a table, and a row for each chain."""
    return [_HEAD, *((name, *_cells(run)) for name, run in result.runs.items())]


def _cells(run: SimulatedRun) -> Iterator[str]:
    if run.outage is None or run.load_in_outage is None:
        yield from ("-", "-")
    else:
        seconds = run.seconds_to_recover
        yield f"{run.load_in_outage:.2f}"
        yield "never" if seconds is None else f"{seconds:g} s"
    yield f"{run.success:.1%}"
    yield f"{run.attempts_per_call:.2f}"
    yield "".join(_blocks(run))


def _blocks(run: SimulatedRun) -> Iterator[str]:
    """Yield a block for each part of the time, the higher the more were answered.

    Where no call began there is a gap, as in the picture.
    """
    seconds = len(run.calls)
    for cell in range(_CELLS):
        begin = cell * seconds // _CELLS
        part = slice(begin, max(begin + 1, (cell + 1) * seconds // _CELLS))
        calls = sum(run.calls[part])
        share = sum(run.answered[part]) / max(calls, 1)
        yield _BLOCKS[round(share * (len(_BLOCKS) - 1))] if calls else " "
