"""Text for people, coloured where it goes to a terminal."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TextIO

import rich.box
from rich.console import Console
from rich.progress import Progress, TaskID
from rich.table import Table as RichTable
from rich.text import Text

from .._log.rich_tree import RichTree
from .._report.document import Block, Heading, Table, stacked, widths
from .plain_output import PlainOutput, edge

_NARROWEST = 12
"""Columns of a text in a table at least."""

_GAP = 2
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
            elif isinstance(block, Table):
                self._print_table(block)
            elif isinstance(block, str):
                self._print(Text(block))
            else:
                self._print(RichTree(block))

    def _print_table(self, table: Table) -> None:
        room = self._of_columns.width
        names, *rows = table.rows
        least = sum(
            min(width, _NARROWEST) if name in table.texts else width
            for name, width in zip(names, widths(table), strict=True)
        )
        if least + _GAP * (len(names) - 1) > room:
            for line in stacked(table, room):
                self._print(Text(line))
            return
        shown = RichTable(
            box=rich.box.SIMPLE_HEAD,
            show_edge=False,
            pad_edge=False,
            padding=(0, _GAP - 1, 0, 0),
        )
        for name in names:
            if name in table.texts:
                shown.add_column(Text(name), overflow="fold")
            else:
                shown.add_column(Text(name), justify="right", no_wrap=True)
        for row in rows:
            shown.add_row(*map(Text, row))
        self._of_columns.print(shown)

    def _print(self, text: Text | RichTree) -> None:
        # A line stays whole when the terminal is made narrower later.
        self._console.print(text, soft_wrap=True)
