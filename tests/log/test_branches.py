"""The branches of a tree."""

from __future__ import annotations

from aioretry_smithy._log.tree import Node, branches


def test_branches_of_any_depth():
    """Each part hangs on the one around it, and further lines hang below the first."""
    leaf = Node(["leaf", "below"], [])
    node = Node(["node", "below"], [leaf, leaf])
    tree = Node(["root", "below"], [node, leaf, node])

    assert [
        "root",
        "│  below",
        "├─ node",
        "│  │  below",
        "│  ├─ leaf",
        "│  │     below",
        "│  └─ leaf",
        "│        below",
        "├─ leaf",
        "│     below",
        "└─ node",
        "   │  below",
        "   ├─ leaf",
        "   │     below",
        "   └─ leaf",
        "         below",
    ] == [f"{branch}{line}" for branch, line in branches(tree)]


def test_line_without_branches():
    """A part with nothing inside is its lines."""
    assert [("", "a"), ("   ", "b")] == [*branches(Node(["a", "b"], []))]
