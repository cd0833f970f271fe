"""Text for people, without colours."""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TextIO

from .._report.document import Block, lines


class PlainOutput:
    """Writes documents to a file without colours; without a file, nowhere."""

    def __init__(self, file: TextIO | None) -> None:
        if isinstance(file, io.TextIOWrapper):
            # Not every encoding has the lines of the trees.
            file.reconfigure(errors="replace")
        self.file = io.StringIO() if file is None else file

    def line(self, text: str) -> None:
        """Write a line."""
        print(text, file=self.file)

    @contextmanager
    def progress(self) -> Iterator[Callable[[str, float], None]]:
        """Ignore how far a block is, which only the coloured output shows."""
        yield lambda name, done: None

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
