"""The table of restarts: what it says of a client, and that the page has it."""

import csv
from pathlib import Path

import pytest

pytest.importorskip("rich")
restarts = pytest.importorskip("restarts")

from restart_clients import NONE, OURS, clients  # noqa: E402

PAGE = Path(__file__).parents[3] / "docs" / "howto" / "restarts.csv"


def shown():
    with PAGE.open(encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file)
    assert head == [*restarts.HEAD]
    return {name: figures for name, *figures in rows}


def test_restart_is_counted_by_who_calls():
    """Without retries as many calls are lost as begin in it, with ours none."""
    found, _ = clients()
    bare, ours = (restarts.lost(found[name](10.0), 1.0, [1]) for name in (NONE, OURS))

    assert 15 <= bare <= 25
    assert 0 == ours


@pytest.mark.long
@pytest.mark.release
def test_page_shows_these_figures():
    """Of all clients that can be had here."""
    _, *rows = restarts.table()
    page = shown()

    assert {name: figures for name, *figures in rows} == {
        name: page[name] for name, *_ in rows
    }
