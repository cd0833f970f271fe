"""What the other checks look through is all that there is."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

from parsed import nodes_in, nodes_of


def test_nodes_are_those_of_the_standard_library():
    """Faster than ``ast.walk``, and as complete."""
    text = Path(__file__).read_text(encoding="utf-8")
    expected = Counter(map(ast.dump, ast.walk(ast.parse(text))))

    assert expected == Counter(map(ast.dump, nodes_in(text)))


def test_file_is_parsed_once():
    """Each check walks through the same nodes."""
    assert nodes_of(Path(__file__)) is nodes_of(Path(__file__))
