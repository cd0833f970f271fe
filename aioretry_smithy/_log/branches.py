"""Draw the branches of a tree in front of its lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator

_T = TypeVar("_T")


class Node(NamedTuple, Generic[_T]):
    """A part of a tree: its lines, of any kind, and the parts inside."""

    lines: list[_T]
    inside: list[Node[_T]]


def branches(node: Node[_T]) -> Iterator[tuple[str, _T]]:
    """Yield all lines, each after its branch."""
    start = ""
    for line in node.lines:
        yield start, line
        start = "│  " if node.inside else "   "
    for number, part in enumerate(node.inside, 1):
        is_last = number == len(node.inside)
        start, trunk = ("└─ ", "   ") if is_last else ("├─ ", "│  ")
        for branch, line in branches(part):
            yield f"{start}{branch}", line
            start = trunk
