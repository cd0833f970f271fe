"""Pieces of a picture: texts that fit and are escaped, colours for day and night."""

from __future__ import annotations

from html import escape
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple

from .timeline import Outcome
from .tree import cells

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_CELL: Final = 0.602
"""How wide a character is in its own height, as in most fonts of equal widths."""

_TEXT_SIZE: Final = 12

_LIGHT: Final[Mapping[str, str]] = {
    "paper": "#ffffff",
    "ink": "#1f2328",
    "muted": "#59636e",
    "grid": "#d8dee4",
    "wait": "#a0a8b1",
    "deadline": "#cf222e",
    Outcome.SUCCESS: "#1a7f37",
    Outcome.FAILURE: "#cf222e",
    Outcome.ERROR: "#8250df",
    Outcome.REFUSED: "#1b7c83",
    Outcome.CANCELLED: "#9a6700",
    Outcome.RUNNING: "#0969da",
}
_DARK: Final[Mapping[str, str]] = {
    "paper": "#0d1117",
    "ink": "#e6edf3",
    "muted": "#9198a1",
    "grid": "#2d333b",
    "wait": "#6e7681",
    "deadline": "#f85149",
    Outcome.SUCCESS: "#3fb950",
    Outcome.FAILURE: "#f85149",
    Outcome.ERROR: "#bc8cff",
    Outcome.REFUSED: "#39c5cf",
    Outcome.CANCELLED: "#d29922",
    Outcome.RUNNING: "#58a6ff",
}

_LINES: Final = {"deadline", "grid"}


def _colours(colours: Mapping[str, str]) -> str:
    return "".join(
        f".{kind}{{{'stroke' if kind in _LINES else 'fill'}:{colour}}}"
        for kind, colour in colours.items()
    )


STYLE: Final = (
    "text{font-family:ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace}"
    ".body{fill-opacity:0.4}"
    ".deadline{stroke-width:1.5;stroke-dasharray:5 3}"
    f"{_colours(_LIGHT)}"
    f"@media (prefers-color-scheme:dark){{{_colours(_DARK)}}}"
)
"""The rules for classes: a colour for each name, and a few more."""


def tag(name: str, content: str) -> str:
    """Return an element that holds a text."""
    return f"<{name}>{escape(content)}</{name}>"


def width(content: str, size: int = _TEXT_SIZE) -> float:
    """Return how wide a text is."""
    return cells(content) * _CELL * size


def text(
    content: str,
    x: float,
    y: int,
    kind: str,
    *,
    size: int = _TEXT_SIZE,
    anchor: str = "start",
) -> str:
    """Return a text in one line.

    Args:
        content: The text.
        x: Where it is anchored.
        y: Its base line.
        kind: The name of its colour.
        size: Its height.
        anchor: Which part of it is at *x*: start, middle or end.
    """
    # Nobody knows the fonts that are there; whichever is taken keeps to this width.
    return (
        f'<text class="{kind}" x="{x:.1f}" y="{y}" font-size="{size}"'
        f' text-anchor="{anchor}" textLength="{width(content, size):.1f}"'
        f' lengthAdjust="spacingAndGlyphs">{escape(content)}</text>'
    )


class Words(NamedTuple):
    """A part of a line."""

    content: str
    kind: str
    """The name of its colour."""


def line(
    parts: Sequence[Words], x: float, y: int, room: float, *, size: int = _TEXT_SIZE
) -> Iterator[str]:
    """Write texts one after another, over whatever is below.

    Args:
        parts: The texts. Where they need more than there is, the longest one is cut.
        x: Where they begin.
        y: Their base line.
        room: How wide they may be.
        size: Their height.
    """
    excess = sum(cells(part.content) for part in parts) - int(room / (_CELL * size))
    longest = max(parts, key=lambda part: cells(part.content))
    for part in parts:
        content = part.content
        if part is longest and excess > 0:
            content = _cut(content, cells(content) - excess)
        end = x + width(content, size)
        # XML swallows blanks at both ends.
        blanks = len(content) - len(content.lstrip())
        x += width(" " * blanks, size)
        if content := content.strip():
            yield (
                f'<rect class="paper" x="{x:.1f}" y="{y - size}"'
                f' width="{width(content, size):.1f}" height="{size + 4}"/>'
            )
            yield text(content, x, y, part.kind, size=size)
        x = end


def _cut(content: str, room: int) -> str:
    ends = accumulate(map(cells, content))
    return f"{content[: sum(end < room for end in ends)]}…"
