"""The tables that compare this library with others fit a phone and are whole."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("explanation/comparison", "coming-from/other-languages")
TABLES = [
    DOCS / page.partition("/")[0] / name
    for page in PAGES
    for name in re.findall(
        r":file: (\S+)", (DOCS / f"{page}.rst").read_text(encoding="utf-8")
    )
]
MOST_COLUMNS = 4


@pytest.mark.parametrize("table", TABLES, ids=lambda path: path.stem)
def test_table_has_few_columns_and_no_empty_cell(table):
    """A cell that was forgotten would read as no."""
    with table.open(encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file)

    assert len(head) <= MOST_COLUMNS
    assert {len(head)} == {len(row) for row in rows}
    assert [] == [row for row in rows if not all(row)]


def test_every_table_is_on_a_page():
    """No table is left over from a page that was cut."""
    there = {
        *(DOCS / "explanation").glob("comparison-*.csv"),
        DOCS / "coming-from" / "other-languages.csv",
    }

    assert there == {*TABLES}
