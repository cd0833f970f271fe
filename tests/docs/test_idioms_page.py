"""The pages about other libraries show each function beside what takes its place."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
EXAMPLES = DOCS / "examples" / "clients"
PAIRS = [
    ("coming-from/aiohttp-middlewares", "middlewares", "middlewares"),
    ("coming-from/aiohttp-retry", "aiohttp_retry", "aiohttp_retry"),
    ("coming-from/backoff", "backoff", "backoff"),
    *(
        (
            "coming-from/tenacity-around-aiohttp",
            f"{library}_around_aiohttp",
            "retries_around_aiohttp",
        )
        for library in ("tenacity", "stamina")
    ),
    ("explanation/tenacity", "tenacity", "tenacity"),
    ("explanation/tenacity", "stamina", "stamina"),
]
"""A page, the module of another library, and what is there in its place."""
ONLY_THEIRS = {"is_done", "retry"}
"""Functions whose place is taken by a setting, or by one that says the contrary."""


def functions_of(name: str) -> list[str]:
    tree = ast.parse((EXAMPLES / f"{name}.py").read_text("utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return [node.name for node in tree.body if isinstance(node, kinds)]


def shown_of(page: str, name: str) -> list[str]:
    """Return the functions of a module that a page shows, one by one or whole."""
    text = (DOCS / f"{page}.rst").read_text("utf-8")
    if re.search(rf"/{name}\.py\n(?!   :)", text):
        return functions_of(name)
    by_name = re.findall(rf"/{name}\.py\n   :pyobject: (\w+)", text)
    by_start = rf"/{name}\.py\n   :start-at: def (\w+)"
    return [*by_name, *re.findall(by_start, text)]


@pytest.mark.parametrize(("page", "other", "our"), PAIRS)
def test_page_shows_every_function_of_both(page, other, our):
    """None stands alone, but for what the other library has no word for."""
    theirs = functions_of(f"with_{other}")
    ours = functions_of(f"in_place_of_{our}")

    assert sorted(theirs) == sorted(shown_of(page, f"with_{other}"))
    assert sorted(ours) == sorted(shown_of(page, f"in_place_of_{our}"))
    assert [] == [name for name in theirs if name not in {*ours, *ONLY_THEIRS}]
