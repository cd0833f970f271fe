"""Draw what happened when: a small picture for each number."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from html import escape
from typing import TYPE_CHECKING, Final, TypeAlias

from .._log.svg import style, text, ticks
from .._log.timeline import COLOURS, OutcomeKind
from .answers import Moment

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .answers import Timeline

_Value: TypeAlias = Callable[[Moment], float]

_WIDTH: Final = 440
_HEIGHT: Final = 128
_LEFT: Final = 52
_RIGHT: Final = _WIDTH - 8
_ROOM: Final = _RIGHT - _LEFT
_TOP: Final = 30
_BOTTOM: Final = 102

_MOST_COLUMNS: Final = _ROOM // 2
"""None is narrower than two pixels; where it stands for several steps, the largest."""

_PANELS: Final[Sequence[tuple[str, OutcomeKind, str, _Value]]] = (
    ("calls", OutcomeKind.RUNNING, "calls", lambda each: each.calls),
    (
        "failures",
        OutcomeKind.FAILURE,
        "calls without success",
        lambda each: each.failures,
    ),
    (
        "retries",
        OutcomeKind.CANCELLED,
        "retries, % of attempts",
        lambda each: each.retry_share * 100,
    ),
    ("p99", OutcomeKind.ERROR, "p99, seconds", lambda each: each.p99 or 0.0),
)

STYLE: Final = style(
    {f"{kind}-area": COLOURS[outcome][1:] for kind, outcome, *_ in _PANELS}, ()
)
"""The rules for the pictures, once for all on a page."""


def panels(timeline: Timeline) -> Iterator[str]:
    """Yield the pictures, without rules: calls, failures, retries, and how long.

    There is none of a single moment: there would be nothing to compare.
    """
    if len(timeline.moments) < 2:
        return
    times = [datetime.fromisoformat(each.started_at) for each in timeline.moments]
    first, last = times[0], times[-1]
    steps = [round((time - first).total_seconds() / timeline.step) for time in times]
    count = steps[-1] + 1
    columns = min(count, _MOST_COLUMNS)
    # Within a day nobody needs the date.
    shown = slice(11, 16) if first.date() == last.date() else slice(5, 16)
    ends = tuple(f"{time.isoformat(' ')[shown]}" for time in (first, last))
    for kind, _, title, value in _PANELS:
        heights = [0.0] * columns
        for step, each in zip(steps, timeline.moments, strict=True):
            column = step * columns // count
            heights[column] = max(heights[column], value(each))
        yield _panel(kind, title, heights, ends)


def _panel(kind: str, title: str, values: list[float], ends: tuple[str, ...]) -> str:
    most = max(values)
    scale = most or 1.0
    # A line at zero, and one at the largest round number.
    marks = {0.0, *([*ticks(most)][-1][:1] if most else ())}
    parts = [
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">',
        f"<title>{escape(title)}</title>",
        text(title, _LEFT, 16, "ink"),
        *(_mark(value, scale) for value in sorted(marks)),
        f'<path class="{kind}-area" d="{_outline(values, scale)}"/>',
        text(ends[0], _LEFT, _HEIGHT - 8, "muted"),
        text(ends[-1], _RIGHT, _HEIGHT - 8, "muted", anchor="end"),
        "</svg>",
    ]
    return "".join(parts)


def _mark(value: float, scale: float) -> str:
    y, name = _y(value, scale), f"{value:,.6g}"
    line = f'<path class="grid" d="M{_LEFT} {y:.1f}H{_RIGHT}"/>'
    return line + text(name, _LEFT - 6, round(y + 4), "muted", anchor="end")


def _y(value: float, scale: float) -> float:
    return _BOTTOM - (_BOTTOM - _TOP) * value / scale


def _outline(values: list[float], scale: float) -> str:
    """Return the outline of an area with a flat top for each column."""
    drawn = f"M{_LEFT} {_BOTTOM}"
    for number, value in enumerate(values, 1):
        end = _LEFT + _ROOM * number / len(values)
        drawn += f"V{_y(value, scale):.1f}H{end:.1f}"
    return f"{drawn}V{_BOTTOM}Z"
