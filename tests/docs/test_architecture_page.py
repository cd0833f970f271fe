"""The page about the architecture names the rooms, files and functions there are."""

from __future__ import annotations

import ast
import re
from itertools import takewhile
from pathlib import Path

import pytest
from test_architecture import FLOORS, GROUND_FLOOR, MODULES, ROOT, trees

REPOSITORY = Path(__file__).parents[2]
PAGE = (REPOSITORY / "docs" / "explanation" / "architecture.rst").read_text("utf-8")
ROOMS = dict.fromkeys(GROUND_FLOOR, 0) | {
    name: level for level, names in enumerate(FLOORS) if level for name in names
}
"""The floor of each room, and of each module that stands in none."""

FUNCTIONS = r"``(\w+/\w+)\.py``:\s+((?:``[\w.]+``(?:,\s+)?)+)"
STEPS = ("From the verb to the response", "The end of an attempt")
"""The sections that go step by step."""

MOST_WORDS = 900


def section(title: str) -> str:
    """Return a section of the page, without the sections after it."""
    after = re.split(rf"^{title}\n[-~]+\n", PAGE, flags=re.MULTILINE)[1]
    return after.partition("\n\n\n")[0]


def defined_in(tree: ast.Module) -> set[str]:
    """Return the names that a module defines, those in classes with the class."""
    names = set()
    for node in tree.body:
        match node:
            case ast.AnnAssign(ast.Name(name)):
                names.add(name)
            case ast.FunctionDef(name) | ast.AsyncFunctionDef(name):
                names.add(name)
            case ast.ClassDef(name, body=body):
                inner = defined_in(ast.Module(body, []))
                names |= {name, *(f"{name}.{each}" for each in inner)}
    return names


def test_files_exist():
    """A file of the package stands without the package's name, a test with its path."""
    paths = re.findall(r"``([\w/]+\.py)``", PAGE)

    assert paths
    assert [] == [
        path
        for path in paths
        if not any((top / path).is_file() for top in (ROOT, REPOSITORY))
    ]


def test_functions_are_in_their_files():
    """Each function that the page names is defined in the file beside it."""
    named = [
        (path.replace("/", "."), name)
        for path, names in re.findall(FUNCTIONS, PAGE)
        for name in re.findall(r"[\w.]+", names)
    ]

    assert named
    assert [] == [
        (module, name)
        for module, name in named
        if name not in defined_in(trees()[module])
    ]


@pytest.mark.parametrize("title", STEPS)
def test_steps_name_their_files(title):
    """Each step of the page names its files."""
    steps = re.split(r"^\d+\. ", section(title), flags=re.MULTILINE)[1:]

    assert len(steps) >= 8
    assert [] == [step for step in steps if not re.search(FUNCTIONS, step)]


def test_way_of_a_call_is_short():
    """The way of a call, with all its sections, is read in a few minutes."""
    way = PAGE.partition("The way of a call\n")[2].partition("State and views\n")[0]

    assert STEPS == tuple(title for title in STEPS if title in way)
    assert len(way.split()) <= MOST_WORDS


def test_modules_exist():
    """A room or a module that is named is there."""
    named = re.findall(r"``(_[a-z_]+(?:\.[a-z_]+)?)``", PAGE)

    assert named
    assert [] == [name for name in named if name not in {*MODULES}]


def test_page_shows_every_room_on_its_floor():
    """The picture has all rooms, from the top down."""
    lines = section("Rooms").partition("::\n")[2].splitlines()
    shown = [
        name for line in lines for name in takewhile(ROOMS.__contains__, line.split())
    ]
    floors = [ROOMS[name] for name in shown]

    assert sorted(ROOMS) == sorted(shown)
    assert sorted(floors, reverse=True) == floors
