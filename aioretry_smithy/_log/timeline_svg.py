"""The timeline of a call as a picture: attempts, waits and the deadline, to scale."""

from __future__ import annotations

import math
from html import escape
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple

from .error_text import describe_cause, excerpt
from .timeline import COLOURS, MAY_VANISH, Bar, OutcomeKind, Span, Timeline, timeline
from .tree import Headline, cells, describe_outcome, in_words, tree

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from .facts import LogFacts


CELL: Final = 0.602
"""The ratio of width to height of a character in monospaced fonts."""

TEXT_SIZE: Final = 12

PAPER: Final = '<rect class="paper"'
"""The start tag of an opaque background rectangle."""

MOST_TICKS: Final = 9
"""How many steps a scale has at most."""

DAY_AND_NIGHT: Final[Mapping[str, tuple[str, str]]] = {
    "paper": ("#ffffff", "#0d1117"),
    "ink": ("#1f2328", "#e6edf3"),
    "muted": ("#59636e", "#9198a1"),
    "grid": ("#d8dee4", "#2d333b"),
}
"""The usual colours by day and by night."""


def style(
    colours: Mapping[str, tuple[str, str]], lines: Collection[str], more: str = ""
) -> str:
    """Return the element with the rules for classes.

    Args:
        colours: The colours of classes by day and by night, besides the usual ones:
            ``paper``, ``ink``, ``muted`` and ``grid``.
        lines: The classes that colour lines, not areas.
        more: Further rules.
    """
    strokes = {"grid", *lines}
    day, night = (
        "".join(
            f".{kind}{{{'stroke' if kind in strokes else 'fill'}:{pair[time]}}}"
            for kind, pair in {**DAY_AND_NIGHT, **colours}.items()
        )
        for time in (0, 1)
    )
    return (
        "<style>"
        # A list of fonts is too much for some renderers, which look at its first.
        "text{font-family:monospace}"
        f"{more}{day}@media (prefers-color-scheme:dark){{{night}}}"
        "</style>"
    )


def document(
    size: tuple[int, int], title: str, about: str, rules: str, parts: Iterable[str]
) -> str:
    """Return a whole picture: *parts* on a sheet of paper, with a title and a text."""
    width, height = size
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"',
        f' width="{width}" height="{height}" role="img">',
        f"<title>{escape(title)}</title>",
        f"<desc>{escape(about)}</desc>",
        rules,
        f'{PAPER} width="{width}" height="{height}" rx="6"/>',
    ]
    return "\n".join([*lines, *parts, "</svg>", ""])


def ticks(end: float) -> Iterator[tuple[float, str]]:
    """Yield round numbers from 0 to *end*, each with its text."""
    step = 10.0 ** math.floor(math.log10(end / MOST_TICKS))
    enough = (n for n in (1, 2, 5) if step * n * MOST_TICKS >= end)
    step *= next(enough, 10)
    digits = max(0, -math.floor(math.log10(step)))
    # What is a whole number of steps may come out a little less.
    for number in range(math.floor(end / step + 1e-9) + 1):
        yield number * step, f"{number * step:.{digits}f}"


def width(content: str, size: int = TEXT_SIZE) -> float:
    """Return how wide a text is."""
    return cells(content) * CELL * size


def text(
    content: str,
    x: float,
    y: float,
    kind: str,
    *,
    size: int = TEXT_SIZE,
    anchor: str = "start",
) -> str:
    """Return a text on the base line *y*, whose *anchor* is at *x*."""
    # Nobody knows the fonts that are there; whichever is taken keeps to this width.
    return (
        f'<text class="{kind}" x="{x:.1f}" y="{y}" font-size="{size}"'
        f' text-anchor="{anchor}" textLength="{width(content, size):.1f}"'
        f' lengthAdjust="spacingAndGlyphs">{escape(content)}</text>'
    )


_WIDTH: Final = 900
_LEFT: Final = 20
_RIGHT: Final = _WIDTH - _LEFT
_ROOM: Final = _RIGHT - _LEFT
_EDGE: Final = 6
_INDENT: Final = 18
_TOP: Final = 68
_DEADLINE_HEIGHT: Final = 16
_ROW_HEIGHT: Final = 38
_AXIS_HEIGHT: Final = 36
_BAR_HEIGHT: Final = 10
_WAIT_HEIGHT: Final = 4
_TITLE_SIZE: Final = 14

_SHORTEST: Final = 0.001
"""Seconds on the axis at least."""

_NARROWEST: Final = 2.0
"""Pixels of a bar at least: an attempt that took no time was made all the same."""

_FARTHEST_DEADLINE: Final = 3.0
"""How many times as long as the call a deadline may be to get a place on the axis."""

_LONG_BODY: Final = 0.01
"""Which part of the axis a body must take to be worth words."""

_LONGEST_TIP: Final = 2000
"""Characters of a message where a bar is pointed at."""


STYLE: Final = style(
    {
        "wait": ("#a0a8b1", "#6e7681"),
        "deadline": ("#cf222e", "#f85149"),
        # Paper over a bar, which is lighter there.
        "connection": ("#ffffff", "#0d1117"),
        **{outcome: (day, night) for outcome, (_, day, night) in COLOURS.items()},
    },
    {"deadline"},
    ".body{fill-opacity:0.4}.connection{fill-opacity:0.6}"
    ".deadline{stroke-width:1.5;stroke-dasharray:5 3}",
)
"""The rules for the classes in a timeline."""


def draw(log: LogFacts, rules: str = STYLE) -> str:
    """Return the timeline of a call as an SVG document.

    Args:
        log: The call.
        rules: What gives the classes their colours, empty on a page that has it.
    """
    times = timeline(log)
    axis = _Axis.of(times)
    top = _TOP if times.deadline is None else _TOP + _DEADLINE_HEIGHT
    bottom = top + _ROW_HEIGHT * sum(map(_count, times.bars))
    request, result, rest = times.headline
    became = [(f"{result}  ", OutcomeKind.of(log)), (rest.lstrip(", "), "muted")]
    parts = [
        *_line([(request, "ink")], 30, _TITLE_SIZE),
        *_line(became, 50),
        *_scale(axis, top, bottom),
        *_deadline(times, axis, bottom),
    ]
    # Paper covers the scale, not the tint of a frame.
    rows = _rows(times.bars, axis, top)
    parts += sorted(rows, key=lambda part: part.startswith(PAPER), reverse=True)
    size, about = (_WIDTH, bottom + _AXIS_HEIGHT), tree(log, times.attempts)
    return document(size, str(times.headline), about, rules, parts)


class _Axis(NamedTuple):
    """Places the seconds of a call on the picture."""

    end: float
    """The second at the right edge."""

    @classmethod
    def of(cls, times: Timeline) -> _Axis:
        end, deadline = max(times.end, _SHORTEST), times.deadline
        if deadline is not None and deadline <= end * _FARTHEST_DEADLINE:
            end = max(end, deadline)
        return cls(end)

    def x(self, second: float) -> float:
        return _LEFT + _ROOM * second / self.end


def _scale(axis: _Axis, top: int, bottom: int) -> Iterator[str]:
    for second, name in ticks(axis.end):
        x = axis.x(second)
        yield f'<path class="grid" d="M{x:.1f} {top}V{bottom + 6}"/>'
        yield _centred(f"{name} s", x, bottom + 20, "muted")


def _deadline(times: Timeline, axis: _Axis, bottom: int) -> Iterator[str]:
    deadline = times.deadline
    if deadline is None:
        return
    name = f"deadline: {deadline:.15g} s"
    if deadline > axis.end:
        yield text(f"{name} →", _RIGHT, _TOP + 4, "muted", anchor="end")
        return
    x = axis.x(max(0.0, deadline))
    yield f'<path class="deadline" d="M{x:.1f} {_TOP + 8}V{bottom + 6}"/>'
    yield _centred(name, x, _TOP + 4, "ink")


def _centred(name: str, x: float, y: int, kind: str) -> str:
    half = width(name) / 2 + _EDGE
    return text(name, max(half, min(x, _WIDTH - half)), y, kind, anchor="middle")


def _count(bar: Bar) -> int:
    """Return how many rows a bar takes, with what is inside of it."""
    return 1 + sum(map(_count, bar.inside))


def _rows(bars: Sequence[Bar], axis: _Axis, y: int, depth: int = 0) -> Iterator[str]:
    """Draw bars one below the other, each in a frame with the bars inside it."""
    for bar in bars:
        height = _ROW_HEIGHT * _count(bar)
        span = bar.parts.get("attempt")
        if span is not None and bar.inside:
            x, length = _place(span, axis, _NARROWEST)
            yield (
                f'<rect class="{bar.outcome}" fill-opacity="0.1" x="{x:.1f}"'
                f' y="{y + 20}" width="{length:.1f}" height="{height - 24}"/>'
            )
        yield from _row(bar, axis, y, depth)
        yield from _rows(bar.inside, axis, y + _ROW_HEIGHT, depth + 1)
        y += height


def _words(bar: Bar, axis: _Axis) -> Iterator[tuple[str, str]]:
    """Yield the words for a bar, each with its class."""
    if isinstance(bar.row, Headline):
        request, outcome, rest = bar.row
        yield from ((f"{request}  ", "ink"), (outcome, bar.outcome), (rest, "muted"))
    else:
        yield from zip(bar.row, ("muted", bar.outcome, "ink", "muted"), strict=True)
    body = bar.parts.get("body")
    if body is not None and body.end - body.start >= axis.end * _LONG_BODY:
        yield f"   body {body.end - body.start:.3f} s", "muted"


def _place(span: Span, axis: _Axis, least: float) -> tuple[float, float]:
    """Return the position and the length of the bar of a time span."""
    length = max(least, axis.x(span.end) - axis.x(span.start))
    return min(axis.x(span.start), _RIGHT - length), length


def _row(bar: Bar, axis: _Axis, y: int, depth: int) -> Iterator[str]:
    """Draw an attempt, a wait or a call: the words, and its bars below."""
    yield from _line([*_words(bar, axis)], y + 14, indent=depth * _INDENT)
    for part, span in bar.parts.items():
        height = _WAIT_HEIGHT if part == "wait" else _BAR_HEIGHT
        least = 0.0 if part in MAY_VANISH else _NARROWEST
        x, length = _place(span, axis, least)
        kind, words_of_part = _labels(bar, part)
        tip = escape(f"{words_of_part}, {span.start:.3f} s to {span.end:.3f} s")
        yield (
            f'<rect class="{kind}" x="{x:.1f}" y="{y + 25 - height // 2}"'
            f' width="{length:.1f}" height="{height}"><title>{tip}</title></rect>'
        )


def _labels(bar: Bar, part: str) -> tuple[str, str]:
    """Return the class of a part, and the words for when it is pointed at."""
    log = bar.log
    name = f"attempt {log.attempt}" if log.attempt else "call"
    if part == "wait":
        return part, f"wait ({log.delay_source})"
    if part == "body":
        return f"{bar.outcome} body", f"{name}, body"
    if part == "connection":
        timings = log.connection
        return part, f"{name}, {'' if timings is None else in_words(timings)}"
    if part == "call":
        return f"{bar.outcome} body", "call with all its attempts"
    cause = None if log.superseded else describe_cause(log)
    said = describe_outcome(log) if cause is None else excerpt(cause, _LONGEST_TIP)
    return bar.outcome, f"{name}: {said}"


def _line(
    parts: list[tuple[str, str]], y: int, size: int = TEXT_SIZE, indent: int = 0
) -> Iterator[str]:
    """Write texts of various kinds in a line; cut the longest so that all fit."""
    room = int((_ROOM - indent) / (CELL * size))
    excess = sum(cells(content) for content, _ in parts) - room
    longest = max(parts, key=lambda part: cells(part[0]))
    x: float = _LEFT + indent
    for part in parts:
        content, kind = part
        if part is longest and excess > 0:
            kept = cells(content) - excess
            ends = accumulate(map(cells, content))
            short = content[: sum(end < kept for end in ends)]
            # It may have been blanks alone, which align columns.
            content = f"{short}{'…' if content[len(short) :].strip() else ' '}"
        end = x + width(content, size)
        # XML swallows blanks at both ends.
        blanks = len(content) - len(content.lstrip())
        x += width(" " * blanks, size)
        if content := content.strip():
            # Over whatever is below.
            yield (
                f'{PAPER} x="{x:.1f}" y="{y - size}"'
                f' width="{width(content, size):.1f}" height="{size + 4}"/>'
            )
            yield text(content, x, y, kind, size=size)
        x = end
