"""Write a document as plain text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .._log.saved_log import SavedLog
from .._log.tree import cells
from .document import Block, Heading, Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_GAP: Final = "  "


def plain_text(blocks: Iterable[Block]) -> str:
    """Return a text without colours, in lines as long as they have to be."""
    return "\n".join(line for block in blocks for line in lines(block))


def lines(block: Block, width: int | None = None) -> Iterator[str]:
    """Yield the lines of a part.

    Args:
        block: The part.
        width: The columns that a table may have; any number where there is no edge.
    """
    if isinstance(block, Heading):
        yield ""
        yield f"{block.title}: {block.text}" if block.text else block.title
    elif isinstance(block, Table):
        yield from _table(block, width)
    elif isinstance(block, SavedLog):
        yield block.render()
    else:
        yield block


def widths(table: Table) -> list[int]:
    """Return the columns of a terminal that each column of a table takes."""
    return [max(map(cells, column)) for column in zip(*table.rows, strict=True)]


def _table(table: Table, width: int | None) -> Iterator[str]:
    wide = widths(table)
    if width is not None and sum(wide) + len(_GAP) * (len(wide) - 1) > width:
        yield from stacked(table, width)
        return
    names = table.rows[0]
    for row in table.rows:
        padded = (
            f"{text}{blanks}" if name in table.texts else f"{blanks}{text}"
            for name, text, blanks in (
                (name, text, " " * (width - cells(text)))
                for name, text, width in zip(names, row, wide, strict=True)
            )
        )
        yield _GAP.join(padded).rstrip()


def stacked(table: Table, width: int) -> Iterator[str]:
    """Yield the rows of a table that is too wide, each over lines of its own.

    The first column is the title. No number is broken in two, or left without the name
    of its column.
    """
    (_, *names), *rows = table.rows
    for title, *values in rows:
        yield title
        line = ""
        for name, value in zip(names, values, strict=True):
            longer = f"{line}, {name} {value}" if line else f"{_GAP}{name} {value}"
            if line and cells(longer) >= width:
                yield f"{line},"
                longer = f"{_GAP}{name} {value}"
            line = longer
        yield line
