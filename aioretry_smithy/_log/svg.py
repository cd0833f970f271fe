"""Write the texts and the style sheet of a picture."""

from __future__ import annotations

from html import escape
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from .timeline import COLOURS
from .tree import cells

if TYPE_CHECKING:
    from collections.abc import Iterator

_CELL: Final = 0.602
"""How wide a character is in its own height, as in most fonts of equal widths."""

_TEXT_SIZE: Final = 12

_DAY_AND_NIGHT: Final[dict[str, tuple[str, str]]] = {
    "paper": ("#ffffff", "#0d1117"),
    "ink": ("#1f2328", "#e6edf3"),
    "muted": ("#59636e", "#9198a1"),
    "grid": ("#d8dee4", "#2d333b"),
    "wait": ("#a0a8b1", "#6e7681"),
    "deadline": ("#cf222e", "#f85149"),
    **{outcome: (day, night) for outcome, (_, day, night) in COLOURS.items()},
}
_LINES: Final = {"deadline", "grid"}


def _rules(time: int) -> str:
    return "".join(
        f".{kind}{{{'stroke' if kind in _LINES else 'fill'}:{colours[time]}}}"
        for kind, colours in _DAY_AND_NIGHT.items()
    )


STYLE: Final = (
    "text{font-family:ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace}"
    ".body{fill-opacity:0.4}"
    ".deadline{stroke-width:1.5;stroke-dasharray:5 3}"
    f"{_rules(0)}"
    f"@media (prefers-color-scheme:dark){{{_rules(1)}}}"
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
    """Return a text on the base line *y*, in the colour of its *kind*.

    Args:
        content: The text.
        x: Where its *anchor* is.
        y: Its base line.
        kind: The name of its colour.
        size: Its height.
        anchor: Its ``start``, ``middle`` or ``end``.
    """
    # Nobody knows the fonts that are there; whichever is taken keeps to this width.
    return (
        f'<text class="{kind}" x="{x:.1f}" y="{y}" font-size="{size}"'
        f' text-anchor="{anchor}" textLength="{width(content, size):.1f}"'
        f' lengthAdjust="spacingAndGlyphs">{escape(content)}</text>'
    )


def line(
    parts: list[tuple[str, str]], x: float, y: int, room: float, size: int = _TEXT_SIZE
) -> Iterator[str]:
    """Write texts, each with its kind, in a row; cut the longest to fit the *room*."""
    excess = sum(cells(content) for content, _ in parts) - int(room / (_CELL * size))
    longest = max(parts, key=lambda part: cells(part[0]))
    for part in parts:
        content, kind = part
        if part is longest and excess > 0:
            content = _cut(content, cells(content) - excess)
        end = x + width(content, size)
        # XML swallows blanks at both ends.
        blanks = len(content) - len(content.lstrip())
        x += width(" " * blanks, size)
        if content := content.strip():
            # Over whatever is below.
            yield (
                f'<rect class="paper" x="{x:.1f}" y="{y - size}"'
                f' width="{width(content, size):.1f}" height="{size + 4}"/>'
            )
            yield text(content, x, y, kind, size=size)
        x = end


def _cut(content: str, room: int) -> str:
    ends = accumulate(map(cells, content))
    return f"{content[: sum(end < room for end in ends)]}…"
