"""Show the result of a simulation: sentences, a table and a picture."""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING, Final, NamedTuple

from .._log.timeline import COLOURS, OutcomeKind
from .._log.timeline_svg import document, style, text, ticks, width
from ._simulation import time_of_trouble

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ._simulation import SimulatedRun, SimulationResult, SimulationSettings


_HEAD = "chain", "load", "recovery", "answered", "attempts"
_FAILED = "failed"
_SHARES = "shares, %"
_OVER_TIME = "answered, over time"
TEXTS = (_HEAD[0], _SHARES, _OVER_TIME)
"""The columns of the table that have no numbers."""

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


def backlog(result: SimulationResult) -> str | None:
    """Say why calls of the first chain were lost after a restart, if that is known."""
    name, run = next(iter(result.runs.items()))
    late = run.late_after_restart
    if not (late and sum(run.failed)):
        return None
    return (
        f"backlog: {late} requests of {name} timed out in the queue after the restart;"
        ' try concurrency="aimd"'
    )


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
    """Yield a block character for each part of the time, higher for more answers.

    Where no call began there is a gap, as in the picture.
    """
    seconds = len(run.calls)
    for cell in range(_CELLS):
        begin = cell * seconds // _CELLS
        part = slice(begin, max(begin + 1, (cell + 1) * seconds // _CELLS))
        calls = sum(run.calls[part])
        share = sum(run.answered[part]) / max(calls, 1)
        yield _BLOCKS[round(share * (len(_BLOCKS) - 1))] if calls else " "


_WIDTH: Final = 900
_HEIGHT: Final = 560
_LEFT: Final = 60
_RIGHT: Final = 864
_LEGEND: Final = 76
_SWATCH: Final = 24

_COLOURS: Final = (
    OutcomeKind.RUNNING,
    OutcomeKind.FAILURE,
    OutcomeKind.CANCELLED,
    OutcomeKind.SUCCESS,
)
_LINES: Final = {
    f"chain{number}": COLOURS[colour][1:] for number, colour in enumerate(_COLOURS)
}
"""The classes of the chains, in turn, with their colours by day and by night."""

_STYLE: Final = style(
    {**_LINES, "served": ("#59636e", "#9198a1"), "outage": ("#eaeef2", "#21262d")},
    {*_LINES, "served"},
    "path{fill:none;stroke-width:2}.grid{stroke-width:1}"
    ".served{stroke-width:1;stroke-dasharray:4 3}",
)


class _Panel(NamedTuple):
    """A part of the picture with a scale of its own."""

    title: str
    top: int
    bottom: int
    seconds: float
    most: float

    def x(self, second: float) -> float:
        share = min(second, self.seconds) / self.seconds
        return _LEFT + (_RIGHT - _LEFT) * share

    def y(self, value: float) -> float:
        return self.bottom - (self.bottom - self.top) * value / self.most

    def frame(self, settings: SimulationSettings) -> Iterator[str]:
        """Draw the outage, the lines of the scale, and the title."""
        trouble = time_of_trouble(settings.outage, settings.restart)
        if trouble is not None:
            begin, end = map(self.x, trouble)
            yield (
                f'<rect class="outage" x="{begin:.1f}" y="{self.top}"'
                f' width="{end - begin:.1f}" height="{self.bottom - self.top}"/>'
            )
        for value, name in ticks(self.most):
            y = self.y(value)
            yield f'<path class="grid" d="M{_LEFT} {y:.1f}H{_RIGHT}"/>'
            yield text(name, _LEFT - 8, round(y + 4), "muted", anchor="end")
        yield text(self.title, _LEFT, self.top - 10, "ink")

    def line(self, kind: str, values: Sequence[float | None]) -> str:
        """Draw a value for each second; None leaves a gap."""
        pen, drawn = "M", ""
        for second, value in enumerate(values):
            if value is None:
                pen = "M"
                continue
            begin, end = self.x(second), self.x(second + 1)
            drawn += f"{pen}{begin:.1f} {self.y(value):.1f}H{end:.1f}"
            pen = "L"
        return f'<path class="{kind}" d="{drawn}"/>'


def draw(result: SimulationResult) -> str:
    """Return a picture of a simulation as an SVG document."""
    settings, runs = result.settings, result.runs
    most = max(settings.capacity, *(max(run.attempts) for run in runs.values()))
    load = _Panel("requests a second", 120, 310, settings.duration, most * 1.05)
    share = _Panel("calls answered, %", 350, 510, settings.duration, 100.0)
    table = "\n".join(", ".join(row[:-1]) for row in rows(result))
    said = conditions(settings)
    parts = [
        *(text(line, _LEFT, 28 + 18 * n, "ink") for n, line in enumerate(said)),
        *_legend(runs),
        *load.frame(settings),
        *share.frame(settings),
        _served(load, settings),
    ]
    for kind, run in zip(cycle(_LINES), runs.values(), strict=False):
        counts = zip(run.answered, run.calls, strict=True)
        shares = [100.0 * good / begun if begun else None for good, begun in counts]
        parts += [load.line(kind, run.attempts), share.line(kind, shares)]
    for second, name in ticks(settings.duration):
        x = share.x(second)
        parts.append(text(f"{name} s", x, share.bottom + 22, "muted", anchor="middle"))
    return document((_WIDTH, _HEIGHT), " ".join(said), table, _STYLE, parts)


def _legend(names: Iterable[str]) -> Iterator[str]:
    x: float = _LEFT
    chains = zip(cycle(_LINES), names, strict=False)
    for kind, name in [*chains, ("served", "can be answered")]:
        yield f'<path class="{kind}" d="M{x:.1f} {_LEGEND - 4}h{_SWATCH}"/>'
        yield text(name, x + _SWATCH + 8, _LEGEND, "ink")
        x += _SWATCH + width(name) + 32


def _served(panel: _Panel, settings: SimulationSettings) -> str:
    """Draw the line of the requests a second that the server can answer."""
    times = [each[:2] for each in (settings.outage, settings.restart) if each]
    changes = sorted({t for begin, length in times for t in (begin, begin + length)})
    drawn = f"M{_LEFT} {panel.y(settings.capacity):.1f}"
    for time in changes:
        served = panel.y(settings.capacity * settings.share_at(time))
        drawn += f"H{panel.x(time):.1f}V{served:.1f}"
    return f'<path class="served" d="{drawn}H{_RIGHT}"/>'
