"""What pages say of versions, costs, other libraries, rooms and followed sentences."""

from __future__ import annotations

import ast
import csv
import functools
import json
import re
import subprocess
import sys
import tomllib
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from test_architecture import FLOORS, GROUND_FLOOR, MODULES
from test_architecture import ROOT as PACKAGE

from aioretry_smithy import (
    Backoff,
    CircuitBreakerClient,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
)

if TYPE_CHECKING:
    pass


ROOT = Path(__file__).parents[2]
FIRST = 0, 3
"""The first release: what it has, needs no mark."""


def test_marks_name_versions_after_the_first_release():
    """Nobody met an older one, and nobody knows what comes after the next."""
    metadata = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    major, minor, *_ = re.findall(r"\d+", metadata["project"]["version"])
    following = int(major), int(minor) + 1
    wrong = [
        (path.name, mark)
        for folder, suffix in (("docs", "rst"), ("aioretry_smithy", "py"))
        for path in sorted((ROOT / folder).rglob(f"*.{suffix}"))
        for mark, *version in re.findall(
            r"(\.\. (?:version\w+|deprecated):: *(\d+)\.(\d+))",
            re.sub(r"``[^`]+``", "", path.read_text(encoding="utf-8")),
        )
        if not FIRST < (int(version[0]), int(version[1])) <= following
    ]

    assert [] == wrong


DOCS = Path(__file__).parents[2] / "docs"
TABLE_PAGES = ("explanation/comparison", "coming-from/other-languages")
TABLES = [
    DOCS / page.partition("/")[0] / name
    for page in TABLE_PAGES
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


def functions_of(name):
    tree = ast.parse((EXAMPLES / f"{name}.py").read_text("utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return [node.name for node in tree.body if isinstance(node, kinds)]


def shown_of(page, name):
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


BENCHMARKS = ROOT / "tests" / "tools" / "benchmarks"
COSTS = ROOT / "docs" / "explanation" / "what-a-call-costs.csv"
COSTS_PAGE = COSTS.with_suffix(".rst").read_text(encoding="utf-8")
README = (ROOT / "README.rst").read_text(encoding="utf-8")
SITUATIONS = {
    "one by one": "stub-1",
    "one by one, least of the rounds": "stub-least",
    "one by one, 503 503 200": "stub-flaky",
    "1000 at once": "stub-1000",
    "loopback, 50 at once": "loopback-50",
    "flaky": "flaky",
    "memory of a call in flight, bytes": "memory",
    "a function": "function",
}


@pytest.fixture
def bounds():
    """The bounds by their situation; modules of the benchmarks have names of ours."""
    pytest.importorskip("rich", reason="prints the tables of the benchmarks")
    script = "import json; from bounds import BOUNDS; print(json.dumps(BOUNDS))"
    command = [sys.executable, "-c", script]
    return json.loads(subprocess.check_output(command, cwd=BENCHMARKS, text=True))


def written(figures):
    return ", from Python 3.13 on ".join(
        f"{figure:.2f}" if figure < 100 else f"{figure:.0f}"
        for figure in figures
        if figure is not None
    )


def test_bounds_on_the_page_are_those_that_are_checked(bounds):
    """Each row is one of them."""
    with COSTS.open(encoding="utf-8", newline="") as file:
        shown = [tuple(row.values()) for row in csv.DictReader(file)]
    checked = {
        (situation, variant.removeprefix("ours: "), base, written((most, on_faster)))
        for situation, scenario in SITUATIONS.items()
        for variant, base, most, on_faster, _ in bounds[scenario]
    }

    assert [] == [row for row in shown if row not in checked]


def test_readme_has_the_figures_of_the_page():
    """Three for each of four chains, measured together."""
    number = r"(\d+(?:\.\d)?)"
    on_the_page = r"^   \* - .+\n" + rf"     - {number}\n" * 3
    in_the_readme = rf" {{2,}}{number} +{number} +{number}$"
    figures = re.findall(on_the_page, COSTS_PAGE, re.MULTILINE)

    assert 4 == len(figures)
    assert figures == re.findall(in_the_readme, README, re.MULTILINE)


SENTENCES = Path(__file__).parent / "sentences"
EXPLANATIONS = ROOT / "docs" / "explanation"
LETTERS = {"armeria": "A", "smithy-guide": "G", "smithy-python": "P", "smithy-rs": "R"}
DIFFERENCES = {"differences": "armeria.rst", "smithy-differences": "smithy.rst"}
"""The tables that say what differs and why, and the pages where they are."""


def rows_of(document):
    path = SENTENCES / f"{document}.csv"
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def shown_by(row):
    return re.findall(r"``(\S+?)``", row["shown by"])


@functools.cache
def names_in(path):
    """Return the tests of a file, those in classes with the class before them."""

    def names(nodes, prefix=""):
        found = set()
        for node in nodes:
            if isinstance(node, ast.ClassDef):
                found |= names(node.body, f"{node.name}::")
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found.add(f"{prefix}{node.name}")
        return {name for name in found if "test_" in name}

    return names(ast.parse(path.read_text(encoding="utf-8")).body)


def exists(name):
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
    text = (EXPLANATIONS / page).read_text(encoding="utf-8")
    table = text.partition(f".. _{label}:")[2].partition("list-table::")[2]
    rows = re.split(r"\n   \* - ", table.partition("\n\n\n")[0])[1:]
    cells = [len(re.findall(r"\n     - ", row)) for row in rows]

    assert {3} == {*cells}


def test_every_list_is_read():
    """No list of sentences is left out."""
    lists = {path.name for path in SENTENCES.iterdir()}

    assert {"README.rst", *(f"{document}.csv" for document in LETTERS)} == lists


PAGE = (ROOT / "docs" / "explanation" / "architecture.rst").read_text("utf-8")
ROOMS = {
    name: level
    for level, names in enumerate(FLOORS)
    for name in (GROUND_FLOOR if "ground floor" in names else names)
}
"""The floor of each room, and of each module that stands in none."""

FUNCTIONS = Path(__file__).parent / "functions_of_a_call.csv"
"""What runs in each step, in the order in which a retried call comes to it."""

MOST_WORDS = 900


def functions():
    with FUNCTIONS.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def section(title):
    """Return a section of the page, without the sections after it."""
    after = re.split(rf"^{title}\n-+\n", PAGE, flags=re.MULTILINE)[1]
    return after.partition("\n\n\n")[0]


def steps():
    """Return the steps of a call, as the page has them, from the first one."""
    counted = re.split(r"^\d+\. ", section("The way of a call"), flags=re.MULTILINE)
    return [step.partition("\n\n")[0] for step in counted[1:]]


async def functions_run(call):
    """Return the functions of the package that run in a call, by their first run."""
    run = {}

    def note(frame, event, argument):
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(PACKAGE):
            file = path.relative_to(PACKAGE).as_posix()
            run[file, frame.f_code.co_qualname] = None

    sys.setprofile(note)
    try:
        await call()
    finally:
        sys.setprofile(None)
    return [*run]


def test_files_exist():
    """A file of the package stands without the package's name, a test with its path."""
    paths = re.findall(r"``([\w/]+\.py)``", PAGE)

    assert paths
    assert [] == [
        path
        for path in paths
        if not any((top / path).is_file() for top in (PACKAGE, ROOT))
    ]


async def test_functions_run_in_their_order():
    """A call that gets 503, 503 and 200 goes the way that the list says."""
    statuses = [503, 503, 200]

    async def answer(request):
        return web.Response(status=statuses.pop(0), text="orders")

    app = web.Application()
    app.router.add_get("/orders", answer)
    strategy = RetryStrategy.failsafe(Backoff.fixed(0.001))
    async with (
        TestServer(app) as server,
        SessionBuilder(server.make_url("/"))
        .decorator(CircuitBreakerClient.new_per_host_decorator())
        .decorator(RetryingClient.new_decorator(strategy, attempt_timeout=3.0))
        .response_timeout(10.0)
        .build() as session,
    ):
        run = await functions_run(lambda: session.get("/orders"))

    listed = [(row["file"], row["function"]) for row in functions()]
    assert statuses == []
    assert listed == [each for each in run if each in {*listed}]


def test_steps_have_their_functions():
    """Each step that the page counts has functions, and no step is left over."""
    numbers = [f"{number}" for number, _ in enumerate(steps(), 1)]

    assert len(numbers) >= 8
    assert numbers == [*dict.fromkeys(row["step"] for row in functions())]


def test_steps_name_a_file_of_their_functions():
    """The file that the page names for a step is one where its functions are."""
    named = {
        (f"{number}", path)
        for number, step in enumerate(steps(), 1)
        for path in re.findall(r"``([\w/]+\.py)``", step)
    }

    assert len(steps()) == len(named)
    assert set() == named - {(row["step"], row["file"]) for row in functions()}


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
