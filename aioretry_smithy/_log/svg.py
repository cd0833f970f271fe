"""Write the parts of SVG pictures: texts, scales, and colours by day and by night."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING, Final

from .tree import cells

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

CELL: Final = 0.602
"""How wide a character is in its own height, as in most fonts of equal widths."""

TEXT_SIZE: Final = 12

PAPER: Final = '<rect class="paper"'
"""The beginning of a rectangle that covers what is below it."""

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
