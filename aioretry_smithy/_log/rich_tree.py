"""The tree of a call in colours, with a time bar for each attempt and each wait."""

from __future__ import annotations

from itertools import groupby, starmap
from typing import TYPE_CHECKING, Final

from rich.text import Text

from .timeline import COLOURS, Bar, OutcomeKind, Span, Timeline, timeline
from .tree import branches, preview_lines, tree

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rich.console import Console, ConsoleOptions

    from .record import LogRecord

_DIM: Final = "dim"
_MARGIN: Final = 3

_SHORTEST_BESIDE: Final = 24
"""Columns that a bar needs to stand beside the words; otherwise it goes below."""

_SHADES: Final = {"wait": "░", "body": "▒", "attempt": "█"}
_TYPED: Final = str.maketrans("├└│─█▒░…", "|`|-#=..")
"""Stand in where the encoding of a terminal lacks the signs."""


class RichTree:
    """Draws a log on the console of ``rich`` that it is printed on.

    A terminal and a notebook get colours and bars, a file the plain tree.
    """

    def __init__(self, log: LogRecord) -> None:
        self._log = log

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[Text]:
        """Yield the lines, made for the width and the encoding of the console."""
        times = timeline(self._log)
        if console.is_terminal or console.is_jupyter:
            lines = _lines(times, console, max(1, options.max_width - 2 * _MARGIN))
        else:
            lines = iter([Text(tree(self._log, times.attempts))])
        for line in lines:
            line.plain = _written(line.plain, options.encoding)
            yield line


def _written(text: str, encoding: str) -> str:
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = text.translate(_TYPED).encode(encoding, "replace").decode(encoding)
    return text


def _lines(times: Timeline, console: Console, room: int) -> Iterator[Text]:
    def wrapped(lines: list[Text]) -> list[Text]:
        parts = [part for line in lines for part in line.wrap(console, room)]
        for part in parts:
            part.rstrip()
        return parts

    request, result, rest = times.headline
    colour = COLOURS[OutcomeKind.of(times.log)][0]
    headline = Text.assemble(request, "  ->  ", (result, colour), rest)
    previews = _dimmed(preview_lines(times.log, ">" if times.attempts else "><"))
    blocks = _blocks(times, room) if times.attempts else ()
    lines = branches([headline, *wrapped(previews)], [*map(wrapped, blocks)])
    return starmap(Text.assemble, lines)


def _blocks(times: Timeline, room: int) -> Iterator[list[Text]]:
    """Yield the lines of each attempt: words, bar and how its body begins."""
    bars = times.bars
    first: Mapping[str, Span] = {}
    if "attempt" not in bars[0].parts:
        # The wait before the first attempt belongs to its line.
        first, bars = bars[0].parts, bars[1:]
    lines = [_words(bar) for bar in bars]
    longest = max(line.cell_len for line in lines) + _MARGIN
    is_beside = room - longest >= _SHORTEST_BESIDE
    width = room - longest if is_beside else room
    columns = width / times.end if times.end else 0.0
    for bar, line in zip(bars, lines, strict=True):
        block = [line, _drawn(bar, first, columns, width)]
        if is_beside:
            line.pad_right(longest - line.cell_len)
            block = [line + block[1]]
        yield block + _dimmed(preview_lines(bar.log, "<"))
        first = {}


def _words(bar: Bar) -> Text:
    styles = "", COLOURS[bar.outcome][0], "", _DIM
    line = Text.assemble(*zip(bar.row, styles, strict=True))
    line.rstrip()
    return line


def _drawn(bar: Bar, first: Mapping[str, Span], columns: float, width: int) -> Text:
    """Draw the time of an attempt, and of the waits around it, to scale."""
    cells = [(" ", "")] * width
    for part, span in (*first.items(), *bar.parts.items()):
        start = min(int(span.start * columns), width - 1)
        end = max(start + (part != "body"), round(span.end * columns))
        style = _DIM if part == "wait" else COLOURS[bar.outcome][0]
        cells[start:end] = [(_SHADES[part], style)] * (end - start)
    runs = groupby(cells)
    text = Text.assemble(*((sign * len([*run]), style) for (sign, style), run in runs))
    text.rstrip()
    return text


def _dimmed(lines: list[str]) -> list[Text]:
    return [Text(line, _DIM) for line in lines]
