"""The page about other libraries' idioms shows each beside what takes its place."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "explanation" / "tenacity.rst").read_text("utf-8")
EXAMPLES = DOCS / "examples" / "clients"


def functions_of(name: str) -> list[str]:
    tree = ast.parse((EXAMPLES / f"{name}.py").read_text("utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return [node.name for node in tree.body if isinstance(node, kinds)]


def shown_of(name: str) -> list[str]:
    return re.findall(rf"/{name}\.py\n   :pyobject: (\w+)", PAGE)


@pytest.mark.parametrize("library", ["tenacity", "stamina"])
def test_page_shows_every_function_of_both(library):
    """None stands alone, but for what the other library has no word for."""
    theirs = functions_of(f"with_{library}")
    ours = functions_of(f"in_place_of_{library}")

    assert sorted(theirs) == sorted(shown_of(f"with_{library}"))
    assert sorted(ours) == sorted(shown_of(f"in_place_of_{library}"))
    assert [] == [name for name in theirs if name not in ours]
