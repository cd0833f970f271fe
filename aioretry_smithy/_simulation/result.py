"""Hold the numbers of a simulation and its counts, and say how the chains did."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from .settings import time_of_trouble

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from .settings import SimulationSettings

_RECOVERED = 0.99
"""The share of calls that succeed when all is well again."""

_HEAD = "chain", "load", "recovery", "answered", "attempts"
_FAILED = "failed"
_SHARES = "shares, %"
_OVER_TIME = "answered, over time"
_BLOCKS = "▁▂▃▄▅▆▇█"
_CELLS = 20
"""How many characters the whole time takes."""

LEGEND = """\
load: requests in the outage, for each call that began in it
recovery: seconds after the outage until 99 % of the calls are answered, for good
attempts: requests for each call, in the whole time"""
_LEGEND_OF_RESTART = f"""\
{_FAILED}: calls that were not answered, in the whole time"""
_LEGEND_OF_REPLICAS = f"""\
{_SHARES}: of the requests in the outage, those to each replica; without one of all"""

_MOST_SHOWN = 5
"""Of so many replicas the share of each is shown, of more the range."""


class Counts:
    """Counts of calls and their outcomes, by second."""

    calls: Counter[int]
    """The calls that began, by second."""

    answered: Counter[int]
    """The calls of these that were answered with a status < 400."""

    attempts: Counter[int]
    """The requests that were sent, by second."""

    by_replica: Counter[tuple[int, int]]
    """These by replica, from 0, and second."""

    def __init__(self) -> None:
        self.calls, self.answered, self.attempts = Counter(), Counter(), Counter()
        self.by_replica = Counter()

    def note_request(self, replica: int, second: int) -> None:
        """Count a request to a replica."""
        self.attempts[second] += 1
        self.by_replica[replica, second] += 1


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
    """Requests that were sent."""

    answered: tuple[int, ...]
    """The number of successful calls (status < 400), by the second of their start."""

    outage: tuple[float, float, float] | None
    """The outage, as in the settings."""

    by_replica: tuple[tuple[int, ...], ...] = ()
    """Requests that were sent to each replica, those in trouble first."""

    restart: tuple[float, float] | None = None
    """The restart of the settings, which is an outage, too."""

    @classmethod
    def of(
        cls, processes: Sequence[Counts], settings: SimulationSettings
    ) -> SimulatedRun:
        """Add up what the processes have counted."""
        seconds = range(math.ceil(settings.duration))

        def by_second(counts: list[Counter[int]]) -> tuple[int, ...]:
            return tuple(sum(each[second] for each in counts) for second in seconds)

        def to(replica: int) -> tuple[int, ...]:
            counts = [process.by_replica for process in processes]
            return tuple(
                sum(each[replica, second] for each in counts) for second in seconds
            )

        return cls(
            calls=by_second([process.calls for process in processes]),
            attempts=by_second([process.attempts for process in processes]),
            answered=by_second([process.answered for process in processes]),
            outage=settings.outage,
            by_replica=tuple(map(to, range(settings.replicas))),
            restart=settings.restart,
        )

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
        """Requests in the outage for each call that began in it; None without one.

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
        return {
            "calls": list(self.calls),
            "attempts": list(self.attempts),
            "answered": list(self.answered),
            "failed": list(self.failed),
            "by_replica": [list(requests) for requests in self.by_replica],
            "shares": list(self.shares),
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
        """Return the result as plain JSON values."""
        settings = asdict(self.settings)
        for name in ("outage", "restart"):
            times = settings[name]
            settings[name] = None if times is None else list(times)
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
    who = "The server" if settings.replicas == 1 else f"{settings.replicas} replicas"
    served = f"{who} can answer {settings.capacity:g} a second"
    if settings.outage is not None:
        start, length, _ = settings.outage
        served += f", from second {start:g} to {start + length:g} "
        served += f"only {settings.share_left:.0%} of that{_trouble(settings)}"
    if settings.restart is not None:
        start, length = settings.restart
        away = "it" if settings.replicas == 1 else "one of them"
        served += f"; {away} is away from second {start:g} to {start + length:g}"
    return calls, f"{served}."


def _trouble(settings: SimulationSettings) -> str:
    """Say what is wrong with some of the replicas."""
    kinds = {
        "dead": settings.dead,
        "failing": settings.failing,
        f"{settings.slow:g} times slower": int(settings.slow > 1),
    }
    them = [f"{number} {kind}" for kind, number in kinds.items() if number]
    return f", with {' and '.join(them)}" if them else ""


def legend(settings: SimulationSettings) -> str:
    """Say what the columns of the table mean."""
    has_restart, has_replicas = settings.restart is not None, settings.replicas > 1
    parts = [LEGEND, *[_LEGEND_OF_RESTART] * has_restart]
    return "\n".join([*parts, *[_LEGEND_OF_REPLICAS] * has_replicas])


def rows(result: SimulationResult) -> list[tuple[str, ...]]:
    """Return the head of a table, and a row for each chain."""
    has_replicas = result.settings.replicas > 1
    has_restart = result.settings.restart is not None
    more = [*[_FAILED] * has_restart, *[_SHARES] * has_replicas]
    head = (*_HEAD, *more, _OVER_TIME)
    return [
        head,
        *((name, *_cells(run, has_replicas)) for name, run in result.runs.items()),
    ]


def _cells(run: SimulatedRun, has_replicas: bool) -> Iterator[str]:
    if run.load_in_outage is None:
        yield from ("-", "-")
    else:
        seconds = run.seconds_to_recover
        yield f"{run.load_in_outage:.2f}"
        yield "never" if seconds is None else f"{seconds:g} s"
    yield f"{run.success:.1%}"
    yield f"{run.attempts_per_call:.2f}"
    if run.restart is not None:
        yield f"{sum(run.failed)}"
    if has_replicas:
        yield _shown_shares(run.shares)
    yield "".join(_blocks(run))


def _shown_shares(shares: Sequence[float]) -> str:
    if len(shares) > _MOST_SHOWN:
        return f"{100 * min(shares):.0f}-{100 * max(shares):.0f}"
    return "/".join(f"{100 * share:.0f}" for share in shares)


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
