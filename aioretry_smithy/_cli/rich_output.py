"""Text for people, coloured where it goes to a terminal."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

import rich.box
from rich.cells import cell_len
from rich.console import Console
from rich.progress import Progress, TaskID
from rich.table import Table
from rich.text import Text

from .._log.rich_tree import RichTree
from .._log.saved_log import SavedLog
from .._report.document import Block, Heading, stacked, widths
from .._report.document import Table as Columns
from .plain_output import PlainOutput, columns_of, edge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from .. import RequestLog

_NARROWEST = 12
"""Columns of a text in a table at least."""

_GAP, _WIDE_GAP = 2, 3
"""Columns between two columns of a table."""

_OF_A_FILE = 10_000
"""Columns that are no limit: a pipe has no edge."""


class _Console(Console):
    def on_broken_pipe(self) -> None:
        # Rich would end the program, and the exit code would be its own.
        raise BrokenPipeError


class RichOutput(PlainOutput):
    """Writes the output of :class:`PlainOutput` with colours, by ``rich``."""

    def __init__(self, file: TextIO | None) -> None:
        super().__init__(file)
        # Where COLUMNS is 0, Rich would write nothing at all.
        width = edge(self.file) if "COLUMNS" in os.environ else None
        self._console = self._of_columns = _Console(file=self.file, width=width)
        if edge(self.file) is None and not self._console.is_terminal:
            # In 80 columns, words are broken that somebody may look for.
            self._of_columns = _Console(file=self.file, width=_OF_A_FILE)

    def heading(self, title: str, text: str) -> None:
        """Write a title and its explanation."""
        self._print(Text.assemble((title, "bold"), f": {text}"))

    def log(self, log: RequestLog) -> None:
        """Draw a call with all attempts as a tree."""
        self._print(RichTree(log))

    @contextmanager
    def progress(self) -> Iterator[Callable[[str, float], None]]:
        """Show in a terminal how far a simulation is, until the block ends."""
        if not self._console.is_terminal:
            # Before 14.3 Rich ends a bar that nobody sees with an empty line.
            with super().progress() as show:
                yield show
            return
        bars: dict[str, TaskID] = {}
        with Progress(console=self._console, transient=True) as progress:

            def show(name: str, done: float) -> None:
                if name not in bars:
                    bars[name] = progress.add_task(name, total=1.0)
                progress.update(bars[name], completed=done)

            yield show

    def document(self, blocks: Iterable[Block]) -> None:
        """Write headings, lines, tables and trees."""
        for block in blocks:
            if isinstance(block, Heading):
                more = f": {block.text}" if block.text else ""
                self._print(Text.assemble("\n", (block.title, "bold"), more))
            elif isinstance(block, Columns):
                self._print_columns(block)
            elif isinstance(block, SavedLog):
                self._print(RichTree(block))
            else:
                self._print(Text(block))

    def table(self, rows: Sequence[Sequence[str]]) -> None:
        """Write rows, of which the first holds the names of the columns."""
        self._print_columns(columns_of(rows), _WIDE_GAP)

    def _print_columns(self, columns: Columns, gap: int = _GAP) -> None:
        room = self._of_columns.width
        wide = _fitting(columns, room, gap)
        if wide is None:
            for line in stacked(columns, room):
                self._print(Text(line))
            return
        head, *rows = columns.rows
        table = Table(
            box=rich.box.SIMPLE_HEAD,
            show_edge=False,
            pad_edge=False,
            padding=(0, 1, 0, gap - 2),
        )
        for name, width in zip(head, wide, strict=True):
            table.add_column(
                Text(name),
                justify="left" if name in columns.texts else "right",
                overflow="fold",
                width=width,
            )
        for row in rows:
            table.add_row(*map(Text, row))
        self._of_columns.print(table)

    def _print(self, text: Text | RichTree) -> None:
        # A line stays whole when the terminal is made narrower later.
        self._console.print(text, soft_wrap=True)


def _fitting(columns: Columns, room: int, gap: int) -> list[int] | None:
    """Return the widths of columns of which no number is cut; None without room."""
    names, *rows = columns.rows
    full = widths(columns)
    least = [
        min(wide, _NARROWEST)
        if name in columns.texts
        else max(map(cell_len, [*name.split(), *(row[place] for row in rows)]))
        for place, (name, wide) in enumerate(zip(names, full, strict=True))
    ]
    left = room - gap * (len(names) - 1) - sum(least)
    if left < 0:
        return None
    found = []
    for wide, narrow in zip(full, least, strict=True):
        more = min(left, wide - narrow)
        left -= more
        found.append(narrow + more)
    return found
