"""The commands on the pages print and draw what is shown: reports, jq, simulations."""

from __future__ import annotations

import logging
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from aioretry_smithy.__main__ import main
from aioretry_smithy._cli.arguments import parse

pytestmark = pytest.mark.virtual_time

DOCS = Path(__file__).parents[2] / "docs"
EXAMPLE = DOCS / "examples" / "slow_calls.py"
PAGE = DOCS / "howto" / "find-out-why-calls-are-slow.rst"
JQ_PAGE = DOCS / "howto" / "ask-calls-with-jq.rst"
BLOCK = re.compile(
    r"^\.\. code-block:: (sh|text)\n(?:   :.*\n)?\n((?:   .*\n|\n)+)", re.MULTILINE
)
REPORT = re.compile(
    r"(?:``|^   )aioretry-smithy (report [^`|>\n]*\.jsonl[^`|>\n]*)", re.MULTILINE
)
FIRST_SCREEN = 24
"""Lines of a terminal that is small."""


def commands_of(page, name):
    """Return the commands of a program on a page, each with parts of what it prints."""
    found = []
    for language, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        if language == "sh":
            found.append((shlex.split(text), []))
        else:
            found[-1][1].extend(lines_of(text))
    return [
        pytest.param(words[1:], shown, id=" ".join(words)[:60])
        for words, shown in found
        if words[0] == name and shown
    ]


def lines_of(text):
    # With and without "rich", tables differ in their rules and their spaces.
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:]{8}Z", "MOMENT", text)
    lines = [" ".join(line.split()) for line in text.splitlines()]
    return [line for line in lines if line.strip("─ ")]


@pytest.fixture(scope="module")
def play():
    """A function that runs the example, as if it were alone in its process."""

    def run(*arguments):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", [str(EXAMPLE), *map(str, arguments)])
            runpy.run_path(str(EXAMPLE), run_name="__main__")
        logging.getLogger("shop.calls").handlers = []

    return run


@pytest.fixture(scope="module")
def folder(play, tmp_path_factory):
    """A folder with the files of calls, and the picture of the slowest one."""
    made = tmp_path_factory.mktemp("calls")
    play(made / "calls.jsonl", "--picture", made / "slow-call.svg")
    play(made / "better.jsonl", "--pool", 30)
    return made


@pytest.fixture
def report(folder, monkeypatch, capsys):
    """A function that returns what a report prints."""
    monkeypatch.chdir(folder)

    def run(*arguments):
        assert 0 == main(["report", *arguments])
        return capsys.readouterr().out

    return run


def causes_in_the_first_screen(text):
    """Return what the slowest calls spent their time on, the most first."""
    screen = " ".join(" ".join(text.splitlines()[:FIRST_SCREEN]).split())
    said = re.search(r"the slowest 5 % \([^)]+\) spent (.*?)(?= By path|$)", screen)[1]
    return [cause for _, cause in re.findall(r"(\d[\d.]*) % ([^,]+)", said)]


def test_report_names_the_cause_of_the_slowest_calls_in_its_first_screen(report):
    """A service that throttles, stalls, and is called through too small a pool."""
    text = report("calls.jsonl", "--match", "path=/orders/*")
    causes = causes_in_the_first_screen(text)

    assert [
        "in the pool's queue",
        "waiting for Retry-After",
        "on failed attempts",
    ] == causes


def test_report_names_another_cause_where_the_pool_is_large(report):
    """What is left is the service."""
    text = report("better.jsonl", "--match", "path=/orders/*")
    causes = causes_in_the_first_screen(text)

    assert ["waiting for Retry-After", "on failed attempts", "on answers"] == causes


@pytest.mark.parametrize(("arguments", "shown"), commands_of(PAGE, "aioretry-smithy"))
def test_report_prints_what_the_page_shows(arguments, shown, report):
    """Each of the lines, in this order."""
    assert "report" == arguments[0]
    printed = iter(lines_of(report(*arguments[1:])))

    assert [] == [line for line in shown if line not in printed]


def test_page_shows_the_picture_that_is_drawn(folder):
    """Of the slowest order."""
    shown = DOCS / "howto" / "slow-call.svg"

    assert shown.read_bytes() == (folder / "slow-call.svg").read_bytes()


def with_the_program(arguments, folder):
    """Ask the program jq."""
    if shutil.which("jq") is None:
        pytest.skip("jq is not installed")
    process = subprocess.run(
        ["jq", *arguments], capture_output=True, check=True, cwd=folder, text=True
    )
    return process.stdout


def with_the_package(arguments, folder):
    """Ask the jq that Python has from its package index."""
    jq = pytest.importorskip("jq")
    *options, program, file = arguments
    text = (folder / file).read_text(encoding="utf-8")
    letters = "".join(options)
    answers = jq.compile(program).input_text(text, slurp="s" in letters)
    return "".join(f"{answer}\n" for answer in answers)


RECIPES = [*commands_of(JQ_PAGE, "jq"), *commands_of(PAGE, "jq")]


@pytest.mark.parametrize("ask", [with_the_program, with_the_package])
@pytest.mark.parametrize(("arguments", "shown"), RECIPES)
def test_jq_answers_what_the_page_shows(arguments, shown, ask, folder):
    """From the file that the example writes."""
    assert shown == lines_of(ask(arguments, folder))


def test_commands_on_all_pages_are_understood(tmp_path, monkeypatch):
    """No page has an option that there is not."""
    monkeypatch.chdir(tmp_path)
    pages = [page.read_text(encoding="utf-8") for page in DOCS.rglob("*.rst")]
    commands = [command for page in pages for command in REPORT.findall(page)]

    assert 8 <= len(commands)
    for command in commands:
        assert "report" == parse(shlex.split(command)).command


def test_every_command_is_found():
    """The recipes, and the reports before and after the change."""
    assert 7 == len(RECIPES)
    assert 2 == len(commands_of(PAGE, "aioretry-smithy"))


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
