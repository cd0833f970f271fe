"""The tree of a call in colours, with a time bar for each attempt and each wait."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple

from rich.text import Text

from ._render import aligned_rows, headline, received, render, sent
from ._timeline import Outcome, timeline

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console, ConsoleOptions

    from ._log import RequestLog
    from ._render import Row
    from ._timeline import Span

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


class _Look(NamedTuple):
    branch: str
    last_branch: str
    trunk: str
    attempt: str
    body: str
    wait: str


_DRAWN: Final = _Look("├─ ", "└─ ", "│  ", "█", "▒", "░")
_TYPED: Final = _Look("|- ", "`- ", "|  ", "#", "=", ".")


class RichTree:
    """What ``rich`` prints of a log; where there is no terminal, the plain tree.

    Args:
        log: The log of a call.
    """

    def __init__(self, log: RequestLog) -> None:
        self._log = log

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[Text]:
        """Yield the lines, made for the width of the console."""
        log = self._log
        if not console.is_terminal:
            yield Text(render(log))
            return
        look = _look(options.encoding)
        room = max(1, options.max_width - 2 * len(_MARGIN))
        yield _headline(log)
        trunk = look.trunk if log.children else _MARGIN
        previews = sent(log) if log.children else [*sent(log), *received(log)]
        for line in _wrapped(_dimmed(previews), console, room):
            yield Text.assemble(trunk, line)
        for child, block in zip(log.children, _blocks(log, look, room), strict=True):
            is_last = child is log.children[-1]
            start = look.last_branch if is_last else look.branch
            trunk = _MARGIN if is_last else look.trunk
            for line in _wrapped(block, console, room):
                yield Text.assemble(start, line)
                start = trunk + _MARGIN


def _look(encoding: str) -> _Look:
    try:
        "".join(_DRAWN).encode(encoding)
    except UnicodeEncodeError:
        return _TYPED
    return _DRAWN


def _headline(log: RequestLog) -> Text:
    request, result, rest = headline(log)
    return Text.assemble(request, "  ->  ", (result, _COLOURS[Outcome.of(log)]), rest)


def _blocks(log: RequestLog, look: _Look, room: int) -> Iterator[list[Text]]:
    """Yield the lines of each attempt: words, bar and how its body begins."""
    rows = aligned_rows(log)
    lines = [_words(row, child) for row, child in zip(rows, log.children, strict=True)]
    longest = max((line.cell_len for line in lines), default=0) + len(_MARGIN)
    is_beside = room - longest >= _SHORTEST_BESIDE
    bars = _bars(log, look, room - longest if is_beside else room)
    for child, line, bar in zip(log.children, lines, bars, strict=True):
        previews = _dimmed(received(child))
        if is_beside:
            line.pad_right(longest - line.cell_len)
            yield [line + bar, *previews]
        else:
            yield [line, bar, *previews]


def _words(row: Row, child: RequestLog) -> Text:
    result = row.outcome.rstrip()
    padding = row.outcome[len(result) :]
    colour = _COLOURS[Outcome.of(child)]
    wait = (row.wait, _DIM)
    line = Text.assemble(row.attempt, (result, colour), padding, row.seconds, wait)
    line.rstrip()
    return line


def _bars(log: RequestLog, look: _Look, width: int) -> Iterator[Text]:
    """Yield the time of each attempt and of the waits around it, to scale."""
    times = timeline(log)
    columns = width / times.end if times.end else 0.0
    cells: list[tuple[str, str]] = []

    def fill(span: Span | None, character: str, style: str, least: int = 1) -> None:
        if span is not None:
            first = min(int(span.start * columns), width - 1)
            last = max(first + least, round(span.end * columns))
            cells[first:last] = [(character, style)] * (last - first)

    first_wait = None
    for bar in times.bars:
        if bar.log is log:
            # No attempt, or one that has no line of its own.
            first_wait = bar.wait
            continue
        colour = _COLOURS[bar.outcome]
        cells[:] = [(" ", "")] * width
        fill(first_wait, look.wait, _DIM)
        fill(bar.wait, look.wait, _DIM)
        fill(bar.body, look.body, colour, least=0)
        fill(bar.attempt, look.attempt, colour)
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
