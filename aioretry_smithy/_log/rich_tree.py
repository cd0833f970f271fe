"""The tree of a call in colours, with a time bar for each attempt and each wait."""

from __future__ import annotations

from itertools import groupby, starmap
from typing import TYPE_CHECKING, Final, NamedTuple

from rich.text import Text

from .timeline import COLOURS, MAY_VANISH, Bar, OutcomeKind, Span, Timeline, timeline
from .tree import Headline, Node, Row, branches, preview_lines, previews_of_call, tree

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rich.console import Console, ConsoleOptions

    from .facts import LogFacts

_DIM: Final = "dim"
_MARGIN: Final = 3

_SHORTEST_BESIDE: Final = 24
"""Columns that a bar needs to stand beside the words; otherwise it goes below."""

_SHADES: Final = {
    "wait": "░",
    "body": "▒",
    "call": "▒",
    "attempt": "█",
    "connection": "▒",
}

_TYPED: Final = str.maketrans("├└│─█▒░…", "|`|-#=..")
"""Stand in where the encoding of a terminal lacks the signs."""


class RichTree:
    """Draws a log on the console of ``rich`` that it is printed on.

    A terminal and a notebook get colours and bars, a file the plain tree.
    """

    def __init__(self, log: LogFacts) -> None:
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
    sheet = _Sheet.of(times, console, room)
    previews = _dimmed(previews_of_call(times.log, times.attempts))
    lines = [
        _headline(times.headline, OutcomeKind.of(times.log)),
        *sheet.wrapped(previews, 0),
    ]
    drawn = branches(Node(lines, [*_nodes(_shown(times), sheet)]))
    return starmap(Text.assemble, drawn)


def _shown(times: Timeline) -> tuple[Bar, ...]:
    """Return what gets lines: attempts, or the calls inside a call without any."""
    return times.bars if times.attempts else times.bars[-1].inside


class _Sheet(NamedTuple):
    """The widths of words and bars."""

    console: Console
    room: int
    deepest: int
    longest: int
    width: int
    columns: float  # for a second

    @classmethod
    def of(cls, times: Timeline, console: Console, room: int) -> _Sheet:
        """Find the widths by the line that reaches farthest."""
        lines = [*_indented(_shown(times))] or [(0, Text())]
        deepest = max(indent for indent, _ in lines)
        longest = max(indent + line.cell_len for indent, line in lines) + _MARGIN
        is_beside = room - longest >= _SHORTEST_BESIDE
        width = max(1, room - (longest if is_beside else deepest))
        columns = width / times.end if times.end else 0.0
        return cls(console, room, deepest, longest if is_beside else 0, width, columns)

    def block(self, line: Text, drawn: Text, indent: int) -> list[Text]:
        """Put a bar beside the words, or below them."""
        if not drawn:
            return [line]
        if self.longest:
            line.pad_right(self.longest - indent - line.cell_len)
            return [line + drawn]
        return [line, Text(" " * (self.deepest - indent)) + drawn]

    def wrapped(self, lines: list[Text], indent: int) -> list[Text]:
        """Wrap long lines."""
        room = max(1, self.room - indent)
        parts = [part for line in lines for part in line.wrap(self.console, room)]
        for part in parts:
            part.rstrip()
        return parts


def _indented(bars: tuple[Bar, ...], indent: int = 0) -> Iterator[tuple[int, Text]]:
    """Yield the words of all bars, each with the columns that it stands further in."""
    _, bars = _first_wait(bars)
    for bar in bars:
        yield indent, _words(bar)
        yield from _indented(bar.inside, indent + _MARGIN)


def _first_wait(bars: tuple[Bar, ...]) -> tuple[Mapping[str, Span], tuple[Bar, ...]]:
    """Take away the wait before the first attempt, which belongs to its line."""
    for bar in bars[:1]:
        if isinstance(bar.row, Row) and bar.parts.keys() == {"wait"}:
            return bar.parts, bars[1:]
    return {}, bars


def _nodes(
    bars: tuple[Bar, ...], sheet: _Sheet, indent: int = 0
) -> Iterator[Node[Text]]:
    """Yield the lines of each attempt or call: words, bar and how its body begins."""
    first, bars = _first_wait(bars)
    for bar in bars:
        block = sheet.block(_words(bar), _drawn(bar, first, sheet), indent)
        is_call = isinstance(bar.row, Headline)
        block += _dimmed(
            previews_of_call(bar.log, bar.log.children)
            if is_call
            else preview_lines(bar.log, "<")
        )
        inside = [*_nodes(bar.inside, sheet, indent + _MARGIN)]
        yield Node(sheet.wrapped(block, indent), inside)
        first = {}


def _words(bar: Bar) -> Text:
    if isinstance(bar.row, Headline):
        return _headline(bar.row, bar.outcome)
    styles = "", COLOURS[bar.outcome][0], "", _DIM
    line = Text.assemble(*zip(bar.row, styles, strict=True))
    line.rstrip()
    return line


def _headline(words: Headline, kind: OutcomeKind) -> Text:
    request, result, rest = words
    return Text.assemble(request, "  ->  ", (result, COLOURS[kind][0]), rest)


def _drawn(bar: Bar, first: Mapping[str, Span], sheet: _Sheet) -> Text:
    """Draw the time of an attempt, and of the waits around it, to scale."""
    width, columns = sheet.width, sheet.columns
    cells = [(" ", "")] * width
    for part, span in (*first.items(), *bar.parts.items()):
        start = min(int(span.start * columns), width - 1)
        end = max(start + (part not in MAY_VANISH), round(span.end * columns))
        style = _DIM if part == "wait" else COLOURS[bar.outcome][0]
        cells[start:end] = [(_SHADES[part], style)] * (end - start)
    runs = groupby(cells)
    text = Text.assemble(*((sign * len([*run]), style) for (sign, style), run in runs))
    text.rstrip()
    return text


def _dimmed(lines: list[str]) -> list[Text]:
    return [Text(line, _DIM) for line in lines]
