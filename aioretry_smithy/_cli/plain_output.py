"""Text for people, without colours."""

from __future__ import annotations

import io
import os
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from .._report.document import lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from .. import RequestLog
    from .._report.document import Block


class PlainOutput:
    """Writes headings, logs and tables as they are; None is nowhere."""

    def __init__(self, file: TextIO | None) -> None:
        if isinstance(file, io.TextIOWrapper):
            # Not every encoding has the lines of the trees.
            file.reconfigure(errors="replace")
        self.file = io.StringIO() if file is None else file

    def line(self, text: str) -> None:
        """Write a line."""
        print(text, file=self.file)

    def heading(self, title: str, text: str) -> None:
        """Write a title and its explanation."""
        self.line(f"{title}: {text}")

    def log(self, log: RequestLog) -> None:
        """Draw a call with all attempts as a tree."""
        self.line(log.render())

    @contextmanager
    def progress(self) -> Iterator[Callable[[str, float], None]]:
        """Show in a terminal how far a simulation is, until the block ends."""
        shown = self.file.isatty()

        def show(name: str, done: float) -> None:
            if shown:
                self.file.write(f"\r{name}: {done:4.0%}  ")
                self.file.flush()

        try:
            yield show
        finally:
            if shown:
                self.line("")

    def document(self, blocks: Iterable[Block]) -> None:
        """Write headings, lines, tables and trees."""
        width = edge(self.file)
        for block in blocks:
            for line in lines(block, width):
                self.line(line)


def edge(file: TextIO) -> int | None:
    """Return the columns of a terminal; None of a file or a pipe: it has no edge."""
    if not (file.isatty() or "COLUMNS" in os.environ):
        return None
    return shutil.get_terminal_size().columns
