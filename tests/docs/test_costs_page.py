"""The page about costs names the bounds that the benchmarks check."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "tests" / "tools" / "benchmarks"
COSTS = ROOT / "docs" / "explanation" / "what-a-call-costs.csv"
PAGE = COSTS.with_suffix(".rst").read_text(encoding="utf-8")
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
    figures = re.findall(on_the_page, PAGE, re.MULTILINE)

    assert 4 == len(figures)
    assert figures == re.findall(in_the_readme, README, re.MULTILINE)
