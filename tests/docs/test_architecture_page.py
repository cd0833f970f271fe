"""The page about the architecture names the rooms, files and functions there are."""

from __future__ import annotations

import csv
import re
import sys
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from aiohttp import web
from aiohttp.test_utils import TestServer
from test_architecture import FLOORS, GROUND_FLOOR, MODULES, ROOT

from aioretry_smithy import (
    Backoff,
    CircuitBreakerClient,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from types import FrameType

REPOSITORY = Path(__file__).parents[2]
PAGE = (REPOSITORY / "docs" / "explanation" / "architecture.rst").read_text("utf-8")
ROOMS = {
    name: level
    for level, names in enumerate(FLOORS)
    for name in (GROUND_FLOOR if "ground floor" in names else names)
}
"""The floor of each room, and of each module that stands in none."""

FUNCTIONS = Path(__file__).parent / "functions_of_a_call.csv"
"""What runs in each step, in the order in which a retried call comes to it."""

MOST_WORDS = 900


def functions() -> list[dict[str, str]]:
    with FUNCTIONS.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def section(title: str) -> str:
    """Return a section of the page, without the sections after it."""
    after = re.split(rf"^{title}\n-+\n", PAGE, flags=re.MULTILINE)[1]
    return after.partition("\n\n\n")[0]


def steps() -> list[str]:
    """Return the steps of a call, as the page has them, from the first one."""
    counted = re.split(r"^\d+\. ", section("The way of a call"), flags=re.MULTILINE)
    return [step.partition("\n\n")[0] for step in counted[1:]]


async def functions_run(call: Callable[[], Awaitable[object]]) -> list[tuple[str, str]]:
    """Return the functions of the package that run in a call, by their first run."""
    run: dict[tuple[str, str], None] = {}

    def note(frame: FrameType, event: str, argument: object) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(ROOT):
            file = path.relative_to(ROOT).as_posix()
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
        if not any((top / path).is_file() for top in (ROOT, REPOSITORY))
    ]


async def test_functions_run_in_their_order():
    """A call that gets 503, 503 and 200 goes the way that the list says."""
    statuses = [503, 503, 200]

    async def answer(request: web.Request) -> web.Response:
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
