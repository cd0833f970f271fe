"""Check the tests: each folder has the name of a room of the package, or is a kind."""

from __future__ import annotations

from pathlib import Path

import aioretry_smithy

TESTS = Path(__file__).parents[1]
PACKAGE = Path(aioretry_smithy.__file__).parent

KINDS = {
    "docs",  # what the pages say and show
    "integration",  # sockets, processes, other people's clients
    "matrices",  # every kind of call through every kind of chain
    "properties",  # of anything that Hypothesis makes up
    "sources",  # what the code and the tests look like
    "storms",  # outages of minutes, in virtual time
    "typing",  # read by type checkers, not run
}
NO_TESTS = {
    "support",  # what tests import
    "tools",  # what is run by hand, with its own tests
    "vectors",  # data of Smithy's
}


def folders(root: Path) -> set[str]:
    return {
        path.name.removeprefix("_")
        for path in root.iterdir()
        if any(
            each.is_file() and "__pycache__" not in each.parts
            for each in path.rglob("*")
        )
    }


def test_each_room_has_its_folder_and_other_folders_are_kinds():
    """Who knows the name of a room finds its tests."""
    assert folders(PACKAGE) | KINDS | NO_TESTS == folders(TESTS)


def test_page_for_contributors_names_each_kind():
    """Each kind and each mark has its place there."""
    page = TESTS.parent / "docs" / "contributing.rst"
    text = page.read_text(encoding="utf-8")

    assert [] == [kind for kind in sorted(KINDS) if f"``{kind}``" not in text]
    assert [] == [mark for mark in ("slow", "long") if f"marked ``{mark}``" not in text]


def test_helpers_are_in_the_folders_for_them():
    """A folder of a room has tests and fixtures only."""
    modules = [path.relative_to(TESTS) for path in TESTS.rglob("*.py")]

    assert [] == [
        path.as_posix()
        for path in modules
        if path.parts[0] not in NO_TESTS | {"typing"}
        if path.name != "conftest.py" and not path.name.startswith("test_")
    ]
