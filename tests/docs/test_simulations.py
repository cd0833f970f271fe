"""The simulations on the pages: their commands print and draw what is shown."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest

from aioretry_smithy.__main__ import main

DOCS = Path(__file__).parents[2] / "docs"
COMMAND = re.compile(
    r"^\.\. simulate-command\n\.\. code-block:: sh\n\n"
    r"    aioretry-smithy (?P<arguments>.*)\n\n"
    r"(?:.*\n)*?\.\. code-block:: text\n\n(?P<shown>(?:    .*\n|\n)+)",
    re.MULTILINE,
)
BEFORE_A_RELEASE = pytest.mark.long, pytest.mark.release
PAGES = ("howto/simulate-an-outage", "explanation/retry-storms")
SIMULATIONS = [
    pytest.param(
        DOCS / f"{page}.rst",
        *command.groups(),
        id=command["arguments"],
        # The one with the default numbers.
        marks=() if "--clients" in command["arguments"] else BEFORE_A_RELEASE,
    )
    for page in PAGES
    for command in COMMAND.finditer((DOCS / f"{page}.rst").read_text(encoding="utf-8"))
]


def lines_of(text):
    # With and without "rich", tables differ in their rules and their spaces.
    lines = [" ".join(line.split()) for line in text.splitlines()]
    return [line for line in lines if line.strip("─ ")]


@pytest.mark.parametrize(("page", "arguments", "shown"), SIMULATIONS)
def test_command_prints_and_draws_what_is_shown(
    page, arguments, shown, tmp_path, monkeypatch, capsys
):
    """Each of the lines, in this order, and the picture of the page."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv("COLUMNS", "100")  # a narrow terminal stacks wide tables
    shutil.copytree(DOCS / "examples" / "outage", tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    assert 0 == main(arguments.split())
    printed = iter(lines_of(capsys.readouterr().out))

    assert [] == [line for line in lines_of(shown) if line not in printed]
    for picture in tmp_path.glob("*.svg"):
        assert (page.parent / picture.name).read_bytes() == picture.read_bytes()


def test_every_simulation_is_found():
    """Three in the how-to, one on the page about storms."""
    assert 4 == len(SIMULATIONS)
