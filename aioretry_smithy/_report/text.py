"""Write a document as plain text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._log.saved_log import SavedLog
from .._log.tree import cells
from .document import Block, Heading, Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def plain_text(blocks: Iterable[Block]) -> str:
    """Return a text without colours, in lines as long as they have to be."""
    return "\n".join(line for block in blocks for line in lines(block))


def lines(block: Block) -> Iterator[str]:
    """Yield the lines of a part."""
    if isinstance(block, Heading):
        yield ""
        yield f"{block.title}: {block.text}" if block.text else block.title
    elif isinstance(block, Table):
        yield from _table(block)
    elif isinstance(block, SavedLog):
        yield block.render()
    else:
        yield block


def _table(table: Table) -> Iterator[str]:
    widths = [max(map(cells, column)) for column in zip(*table.rows, strict=True)]
    names = table.rows[0]
    for row in table.rows:
        padded = (
            f"{text}{blanks}" if name in table.texts else f"{blanks}{text}"
            for name, text, blanks in (
                (name, text, " " * (width - cells(text)))
                for name, text, width in zip(names, row, widths, strict=True)
            )
        )
        yield "  ".join(padded).rstrip()
