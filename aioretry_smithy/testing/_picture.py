"""Draw a simulation: what the server got, and how many calls were answered."""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING, Final, NamedTuple

from .._log.timeline import COLOURS, OutcomeKind
from .._log.timeline_svg import document, style, text, ticks, width
from ._simulation import conditions, rows, time_of_trouble

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ._simulation import SimulationResult, SimulationSettings


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
    """Draw how many requests a second the server can answer."""
    times = [each[:2] for each in (settings.outage, settings.restart) if each]
    changes = sorted({t for begin, length in times for t in (begin, begin + length)})
    drawn = f"M{_LEFT} {panel.y(settings.capacity):.1f}"
    for time in changes:
        served = panel.y(settings.capacity * settings.share_at(time))
        drawn += f"H{panel.x(time):.1f}V{served:.1f}"
    return f'<path class="served" d="{drawn}H{_RIGHT}"/>'
