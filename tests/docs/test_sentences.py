"""Every sentence of the documents that this library follows names what shows it."""

from __future__ import annotations

import ast
import csv
import functools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SENTENCES = Path(__file__).parent / "sentences"
PAGES = ROOT / "docs" / "explanation"
LETTERS = {"armeria": "A", "smithy-guide": "G", "smithy-python": "P", "smithy-rs": "R"}
DIFFERENCES = {"differences": "armeria.rst", "smithy-differences": "smithy.rst"}
"""The tables that say what differs and why, and the pages where they are."""


def rows_of(document: str) -> list[dict[str, str]]:
    path = SENTENCES / f"{document}.csv"
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def shown_by(row: dict[str, str]) -> list[str]:
    return re.findall(r"``(\S+?)``", row["shown by"])


@functools.cache
def names_in(path: Path) -> set[str]:
    """Return the tests of a file, those in classes with the class before them."""

    def names(nodes: list[ast.stmt], prefix: str = "") -> set[str]:
        found = set()
        for node in nodes:
            if isinstance(node, ast.ClassDef):
                found |= names(node.body, f"{node.name}::")
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found.add(f"{prefix}{node.name}")
        return {name for name in found if "test_" in name}

    return names(ast.parse(path.read_text(encoding="utf-8")).body)


def exists(name: str) -> bool:
    """Say whether a test is there, or an example that is run and compared."""
    path, _, test = name.partition("::")
    if not (ROOT / path).is_file():
        return False
    if test:
        return test in names_in(ROOT / path)
    # Which examples are run, and with what result, is a matter of test_examples.py.
    is_run = (ROOT / path).parent == ROOT / "docs" / "examples"
    return is_run and (ROOT / path).with_suffix(".txt").is_file()


@pytest.mark.parametrize(("document", "letter"), LETTERS.items())
def test_sentences_are_numbered_without_gaps(document, letter):
    """A number stands for one sentence, and none was forgotten."""
    rows = rows_of(document)

    assert [f"{letter}{number}" for number, _ in enumerate(rows, 1)] == [
        row["id"] for row in rows
    ]


@pytest.mark.parametrize("document", LETTERS)
def test_sentences_are_shown_by_what_there_is(document):
    """Each one names tests or examples, and nothing else, and all of them exist."""
    rows = rows_of(document)
    missing = [name for row in rows for name in shown_by(row) if not exists(name)]

    assert [] == missing
    assert [] == [row["id"] for row in rows if not shown_by(row)]
    assert [row["shown by"] for row in rows] == [
        " ".join(f"``{name}``" for name in shown_by(row)) for row in rows
    ]


@pytest.mark.parametrize(("document", "letter"), LETTERS.items())
def test_what_differs_leads_to_the_reason(document, letter):
    """A word about a difference is a link to the table that says why."""
    table = "differences" if letter == "A" else "smithy-differences"
    words = [row["here"] for row in rows_of(document) if row["here"]]

    assert words
    assert [] == [
        word for word in words if not re.fullmatch(rf":ref:`[^`]+ <{table}>`", word)
    ]


@pytest.mark.parametrize(("label", "page"), DIFFERENCES.items())
def test_differences_have_reasons(label, page):
    """Each row of the tables has all its cells."""
    text = (PAGES / page).read_text(encoding="utf-8")
    table = text.partition(f".. _{label}:")[2].partition("list-table::")[2]
    rows = re.split(r"\n   \* - ", table.partition("\n\n\n")[0])[1:]
    cells = [len(re.findall(r"\n     - ", row)) for row in rows]

    assert {3} == {*cells}


def test_every_list_is_read():
    """No list of sentences is left out."""
    lists = {path.name for path in SENTENCES.iterdir()}

    assert {"README.rst", *(f"{document}.csv" for document in LETTERS)} == lists
