"""The page about the architecture names the rooms, files and functions there are."""

from __future__ import annotations

import ast
import csv
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

FUNCTIONS = Path(__file__).parent / "functions_of_a_call.csv"
"""What makes each step, and what the other sections speak of."""

CHECKS = (REPOSITORY / "docs" / "explanation" / "attempts-and-deadlines.rst").read_text(
    "utf-8"
)
STEPS = {"The way of a call": PAGE, "After each attempt": CHECKS}
"""The sections that go step by step, and their pages."""

MOST_WORDS = 1500


def functions() -> list[dict[str, str]]:
    with FUNCTIONS.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def section(title: str, page: str = PAGE) -> str:
    """Return a section of a page, without the sections after it."""
    after = re.split(rf"^{title}\n-+\n", page, flags=re.MULTILINE)[1]
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
    """Each function of a step is defined in the file beside it."""
    named = [
        (row["file"].removesuffix(".py").replace("/", "."), name)
        for row in functions()
        for name in row["functions"].split()
    ]

    assert named
    assert [] == [
        (module, name)
        for module, name in named
        if name not in defined_in(trees()[module])
    ]


@pytest.mark.parametrize("title", STEPS)
def test_steps_have_their_functions(title):
    """Each step that a page counts has functions, and no step is left over."""
    steps = re.findall(r"^(\d+)\. ", section(title, STEPS[title]), flags=re.MULTILINE)
    made = [row["step"] for row in functions() if row["section"] == title]

    assert len(steps) >= 8
    assert steps == [*dict.fromkeys(step for step in made if step)]


def test_steps_name_a_file_of_their_functions():
    """The file that the page names for a step is one where its functions are."""
    title = "The way of a call"
    steps = re.split(r"^\d+\. ", section(title), flags=re.MULTILINE)[1:]
    named = {
        (title, f"{number}", path)
        for number, step in enumerate(steps, 1)
        for path in re.findall(r"``([\w/]+\.py)``", step.partition("\n\n")[0])
    }

    assert len(steps) == len(named)
    assert set() == named - {
        (each["section"], each["step"], each["file"]) for each in functions()
    }


def test_functions_stand_for_sections():
    """Each row belongs to a section that is there."""
    titles = {row["section"] for row in functions()} - {*STEPS}

    assert titles
    assert [] == [title for title in titles if not section(title).strip()]


def test_page_is_short():
    """The page is read in a few minutes."""
    assert len(PAGE.split()) <= MOST_WORDS


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
