"""The tree of a call in colours, with a time bar for each attempt and each wait."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Final

from rich.text import Text

from .timeline import Outcome, timeline
from .tree import (
    aligned_rows,
    headline,
    request_preview_lines,
    response_preview_lines,
    tree,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console, ConsoleOptions

    from .record import LogRecord
    from .timeline import Span, Timeline
    from .tree import Row

_COLOURS: Final = {
    Outcome.SUCCESS: "green",
    Outcome.FAILURE: "red",
    Outcome.ERROR: "magenta",
    Outcome.REFUSED: "cyan",
    Outcome.CANCELLED: "yellow",
    Outcome.RUNNING: "blue",
}
_DIM: Final = "dim"

_MARGIN: Final = "   "

_SHORTEST_BESIDE: Final = 24
"""Columns that a bar needs to stand beside the words; otherwise it goes below."""

_ATTEMPT: Final = "█"
_BODY: Final = "▒"
_WAIT: Final = "░"
_TYPED: Final = str.maketrans("├└│─█▒░…", "|`|-#=..")
"""Stand-ins where an encoding lacks what is drawn."""


class RichTree:
    """Draws a log for ``rich``; in a file, the plain tree.

    Args:
        log: The log of a call.
    """

    def __init__(self, log: LogRecord) -> None:
        self._log = log

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[Text]:
        """Yield the lines, made for the width and the encoding of the console."""
        times = timeline(self._log)
        if console.is_terminal or console.is_jupyter:
            lines = self._lines(times, console, options)
        else:
            lines = iter([Text(tree(self._log, times.attempts))])
        for line in lines:
            line.plain = _written(line.plain, options.encoding)
            yield line

    def _lines(
        self, times: Timeline, console: Console, options: ConsoleOptions
    ) -> Iterator[Text]:
        log, attempts = self._log, times.attempts
        room = max(1, options.max_width - 2 * len(_MARGIN))
        yield _headline(log, times)
        trunk = "│  " if attempts else _MARGIN
        previews = request_preview_lines(log)
        if not attempts:
            previews += response_preview_lines(log)
        for line in _wrapped(_dimmed(previews), console, room):
            yield Text.assemble(trunk, line)
        blocks = _blocks(times, room) if attempts else ()
        for number, block in enumerate(blocks, 1):
            is_last = number == len(attempts)
            start = "└─ " if is_last else "├─ "
            trunk = _MARGIN if is_last else "│  "
            for line in _wrapped(block, console, room):
                yield Text.assemble(start, line)
                start = trunk + _MARGIN


def _written(text: str, encoding: str) -> str:
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = text.translate(_TYPED).encode(encoding, "replace").decode(encoding)
    return text


def _headline(log: LogRecord, times: Timeline) -> Text:
    request, result, rest = headline(log, times.attempts)
    return Text.assemble(request, "  ->  ", (result, _COLOURS[Outcome.of(log)]), rest)


def _blocks(times: Timeline, room: int) -> Iterator[list[Text]]:
    """Yield the lines of each attempt: words, bar and how its body begins."""
    attempts = times.attempts
    rows = aligned_rows(attempts)
    lines = [_words(row, child) for row, child in zip(rows, attempts, strict=True)]
    longest = max(line.cell_len for line in lines) + len(_MARGIN)
    is_beside = room - longest >= _SHORTEST_BESIDE
    bars = _bars(times, room - longest if is_beside else room)
    for child, line, bar in zip(attempts, lines, bars, strict=True):
        previews = _dimmed(response_preview_lines(child))
        if is_beside:
            line.pad_right(longest - line.cell_len)
            yield [line + bar, *previews]
        else:
            yield [line, bar, *previews]


def _words(row: Row, child: LogRecord) -> Text:
    result = row.outcome.rstrip()
    padding = row.outcome[len(result) :]
    colour = _COLOURS[Outcome.of(child)]
    wait = (row.wait, _DIM)
    line = Text.assemble(row.attempt, (result, colour), padding, row.seconds, wait)
    line.rstrip()
    return line


def _bars(times: Timeline, width: int) -> Iterator[Text]:
    """Yield the time of each attempt and of the waits around it, to scale."""
    columns = width / times.end if times.end else 0.0
    cells: list[tuple[str, str]] = []

    def fill(span: Span | None, character: str, style: str, least: int = 1) -> None:
        if span is not None:
            first = min(int(span.start * columns), width - 1)
            last = max(first + least, round(span.end * columns))
            cells[first:last] = [(character, style)] * (last - first)

    first_wait = None
    for bar in times.bars:
        if bar.is_first_wait:
            first_wait = bar.wait
            continue
        colour = _COLOURS[bar.outcome]
        cells[:] = [(" ", "")] * width
        fill(first_wait, _WAIT, _DIM)
        fill(bar.wait, _WAIT, _DIM)
        fill(bar.body, _BODY, colour, least=0)
        fill(bar.attempt, _ATTEMPT, colour)
        first_wait = None
        yield _joined(cells)


def _joined(cells: list[tuple[str, str]]) -> Text:
    """Put cells of the same style together."""
    text = Text()
    for style, run in groupby(cells, key=lambda cell: cell[1]):
        text.append("".join(character for character, _ in run), style)
    text.rstrip()
    return text


def _dimmed(lines: list[str]) -> list[Text]:
    return [Text(line, _DIM) for line in lines]


def _wrapped(lines: list[Text], console: Console, width: int) -> Iterator[Text]:
    for line in lines:
        for part in line.wrap(console, width, overflow="fold", no_wrap=False):
            part.rstrip()
            yield part
