"""Every example of the documents runs and prints what the pages show."""

from __future__ import annotations

import asyncio
import doctest
import logging
import os
import random
import re
import runpy
import subprocess
import sys
import textwrap
import traceback
from pathlib import Path

import aiohttp
import pytest

from aioretry_smithy import HttpRequest, new_response
from aioretry_smithy.testing import VirtualTimeLoop

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
EXAMPLES = DOCS / "examples"
README = (ROOT / "README.rst").read_text(encoding="utf-8")
PAGES = sorted(
    page for page in DOCS.rglob("*.rst") if ">>> " in page.read_text(encoding="utf-8")
)
SCRIPTS = sorted(EXAMPLES.glob("*.py"))
WITH_SERVER = sorted((EXAMPLES / "connections").glob("*.py"))

DIFFERS_EACH_TIME = {
    r"\b[a-z2-7]{8}-\d+(?=[.,\"\n])": "ID",
    r"(?<=127\.0\.0\.1:)\d+": "PORT",
    r"\d{4}-\d\d-\d\dT[\d:.]+\+00:00": "STARTED",
    r"\w{3}, \d\d \w{3} \d{4} [\d:]{8} GMT": "DATE",
    r"Python/[\w.]+ aiohttp/[\w.]+": "VERSIONS",
}
OPTIONAL = {"opentelemetry", "prometheus_client", "structlog"}
"""Packages that an example may be about and that are not installed everywhere."""
MEASURED = re.compile(r"(?<![\d.])\d+\.\d{3}(?![\d.])")
EARLY, LATE = 0.4, 3.0
"""Seconds by which a machine may be faster or, if it is busy, slower than ours was."""


def is_storm(script):
    """Say whether a script simulates for seconds."""
    return script.stem in {"hedging_outage", "hedging_tail", "retry_storm"}


BEFORE_A_RELEASE = pytest.mark.long, pytest.mark.release


def name_of(path):
    return path.relative_to(ROOT).as_posix()


def shown_beside(script):
    return script.with_suffix(".txt").read_text(encoding="utf-8")


def without_chance(text):
    for pattern, name in DIFFERS_EACH_TIME.items():
        text = re.sub(pattern, name, text)
    return text


def without_measurements(text):
    text = MEASURED.sub("#", without_chance(text))
    # Less than half a millisecond is not shown at all.
    return text.replace("not sent after # s", "not sent")


def measurements_in(text):
    # What took less than half a millisecond is not shown there.
    text = re.sub(r"not sent after [\d.]+ s", "not sent", text)
    return [float(number) for number in MEASURED.findall(text)]


def blocks_of(page, language):
    """Return the code blocks of a page in a language, without their indent."""
    blocks = re.findall(
        rf"^\.\. code-block:: {language}\n\n((?:    .*\n|\n)+)", page, re.MULTILINE
    )
    return [f"{textwrap.dedent(block).strip()}\n" for block in blocks]


def blocks_of_readme(language):
    return blocks_of(README, language)


TUTORIAL = (DOCS / "tutorial.rst").read_text(encoding="utf-8")
SERVICE, *STEPS = blocks_of(TUTORIAL, "python")
SHOWN = blocks_of(TUTORIAL, "text")


def assert_printed(shown, output):
    """Compare two texts: their words exactly, their seconds nearly."""
    assert without_measurements(shown) == without_measurements(output)
    pairs = zip(measurements_in(shown), measurements_in(output), strict=True)
    assert [] == [
        (ours, theirs)
        for ours, theirs in pairs
        if not ours - EARLY <= theirs <= ours + LATE
    ]


@pytest.fixture
def output_of(capsys, monkeypatch):
    """A function that runs a script as if it were alone in its process."""
    root, ours = logging.getLogger(), logging.getLogger("aioretry_smithy")

    def run(script, *arguments):
        handlers, levels = root.handlers, (root.level, ours.level)
        root.handlers = []  # so that the script may call logging.basicConfig()
        random.seed(7)  # the same jitter each time
        monkeypatch.setattr(sys, "argv", [str(script), *arguments])
        try:
            runpy.run_path(str(script), run_name="__main__")
        except ModuleNotFoundError as error:
            missing = error.name.partition(".")[0]
            if missing not in OPTIONAL:
                raise
            pytest.skip(f"{missing} is not installed")
        finally:
            root.handlers = handlers
            root.setLevel(levels[0])
            ours.setLevel(levels[1])
            if "structlog" in sys.modules:
                sys.modules["structlog"].reset_defaults()
        return capsys.readouterr().out

    return run


@pytest.fixture
def _virtual_time(monkeypatch):
    """Let ``asyncio.run()`` cost no real time."""

    def run(main):
        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            return runner.run(main)

    monkeypatch.setattr(asyncio, "run", run)


@pytest.mark.usefixtures("_virtual_time")
@pytest.mark.parametrize(
    "script",
    [
        pytest.param(script, marks=BEFORE_A_RELEASE) if is_storm(script) else script
        for script in SCRIPTS
    ],
    ids=name_of,
)
def test_example_prints_what_is_shown(script, output_of):
    """An example without a network prints the text beside it, to the millisecond."""
    output = output_of(script)

    assert without_chance(shown_beside(script)) == without_chance(output)


def test_pictures_show_what_is_drawn(output_of, tmp_path):
    """The timelines on the pages are those that their example draws today."""
    pytest.importorskip("rich", reason="draws the tree")
    for script in "see_a_call.py", "see_calls_inside.py", "hedged_call.py":
        output_of(EXAMPLES / script, "--pictures", str(tmp_path))

    names = "see-a-call.svg", "see-a-call-deadline.svg", "see-calls-inside.svg"
    shown = [*(DOCS / "howto" / name for name in names)]
    shown.append(DOCS / "explanation" / "hedged-call.svg")
    for file in shown:
        assert file.read_bytes() == (tmp_path / file.name).read_bytes()
    # How the tree looks is a matter of the version of rich.
    assert (tmp_path / "see-a-call-tree.svg").stat().st_size


@pytest.mark.parametrize("script", WITH_SERVER, ids=name_of)
def test_example_with_a_server_prints_what_is_shown(script, output_of, monkeypatch):
    """An example meets a real server and prints the text beside it."""
    monkeypatch.syspath_prepend(script.parent)

    assert_printed(shown_beside(script), output_of(script))


@pytest.mark.parametrize(
    ("step", "shown"), [*zip(STEPS, SHOWN, strict=True)], ids=range(1, 8)
)
def test_step_of_the_tutorial_prints_what_is_shown(
    step, shown, output_of, monkeypatch, tmp_path
):
    """Saved beside its service, as the page says, each program prints its text."""
    (tmp_path / "service.py").write_text(SERVICE, encoding="utf-8")
    program = tmp_path / "step.py"
    program.write_text(step, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)

    assert_printed(shown, output_of(program))


def test_every_output_belongs_to_an_example():
    """No text stands alone that nothing compares with a run."""
    shown = {path.with_suffix(".py") for path in EXAMPLES.rglob("*.txt")}

    assert set() == shown - {*SCRIPTS, *WITH_SERVER}


STARTED = r"\d{4}-\d\d-\d\dT\d\d(?=:)"
IDS = r"\b[a-z2-7]{8}(?=-\d+[.,\"\n])"


@pytest.mark.parametrize("chance", [STARTED, IDS], ids=["hour", "process"])
def test_output_is_of_one_run(chance):
    """What differs each time is not compared with a run, but agrees with itself."""
    mixed = [
        name_of(output)
        for output in EXAMPLES.rglob("*.txt")
        if len({*re.findall(chance, output.read_text(encoding="utf-8"))}) > 1
    ]

    assert [] == mixed


def test_every_example_is_on_a_page():
    """No example is left over from a page that has gone."""
    included = {
        (page.parent / target).resolve()
        for page in DOCS.rglob("*.rst")
        for target in re.findall(
            r"literalinclude:: (\S+\.py)", page.read_text(encoding="utf-8")
        )
    }

    assert set() == {*EXAMPLES.rglob("*.py")} - included


def test_programs_are_shown_with_their_imports():
    """What is shown to its end runs when it is copied from the page."""
    cut = [
        (page.name, target)
        for page in DOCS.rglob("*.rst")
        for target, first in re.findall(
            r"literalinclude:: (\S+\.py)\n +:lines: (\d+)-\n",
            page.read_text(encoding="utf-8"),
        )
        for line in (page.parent / target)
        .read_text("utf-8")
        .splitlines()[: int(first) - 1]
        if re.match("import |from ", line)
    ]

    assert [] == cut


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_prompts_answer_as_shown(page):
    """Python answers as a page shows it at a prompt."""
    failures, _ = doctest.testfile(
        str(page),
        encoding="utf-8",
        module_relative=False,
        optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE,
    )

    assert 0 == failures


def test_tests_of_the_how_tos_pass():
    """The tests that how-tos show pass, under a configuration of their own."""
    # The last two would import for a second what the tests do not use.
    unused = "no:cacheprovider", "no:hypothesispytest", "no:randomly"
    options = [option for name in unused for option in ("-p", name)]
    process = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *options, "."],
        capture_output=True,
        check=False,
        cwd=EXAMPLES / "testing",
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        text=True,
    )

    assert 0 == process.returncode, process.stdout + process.stderr


@pytest.fixture
def run_readme(monkeypatch, _virtual_time):
    """A function that runs the README's program on a server's answers."""

    def run(*answers):
        script = iter(answers)

        async def request(session, method, url, **options):
            status, seconds = next(script)
            async with asyncio.timeout(options["timeout"].total):
                await asyncio.sleep(seconds)
            return new_response(HttpRequest(method, url), status)

        monkeypatch.setattr(aiohttp.ClientSession, "_request", request)
        program, _ = blocks_of_readme("python")
        random.seed(7)
        exec(compile(program, "README.rst", "exec"), {"__name__": "__main__"})

    return run


REFUSAL, SILENCE, ANSWER = (503, 0.042), (200, 60.0), (200, 0.042)


def test_readme_shows_what_its_code_prints(run_readme, capsys):
    """First on a bad day of the server, then on a worse one, the end of a traceback."""
    run_readme(REFUSAL, SILENCE, ANSWER)
    with pytest.raises(TimeoutError) as failed:
        run_readme(REFUSAL, *[SILENCE] * 9)

    raised = traceback.format_exception_only(failed.value)
    output = capsys.readouterr().out + "\n" + "".join(raised)
    (shown,) = blocks_of_readme("text")
    assert without_chance(shown) == without_chance(output)


def test_readme_fits_on_a_few_screens():
    """Somebody in a hurry reads it to the end."""
    assert len(README.splitlines()) <= 100


TWO_AT_A_TIME = "--parallel 2 --parallel-no-spinner"


def test_readme_has_its_commands():
    """One for each thing: to install, the demo, the tests and the rest; on one line."""
    commands = blocks_of_readme("sh")

    assert [1, 1, 1, 1] == [len(command.splitlines()) for command in commands]
    assert commands[0] == "pip install aioretry-smithy\n"
    assert commands[1].endswith("python -m aioretry_smithy demo\n")
    assert commands[2].endswith("tox run-parallel --parallel-live -m quick\n")
    assert commands[3].endswith(f"tox run-parallel {TWO_AT_A_TIME} -m rest\n")


def test_commands_of_the_readme_are_found_by_their_markers():
    """``.ci/run`` takes the command after each, so that it runs what stands here."""
    found = re.findall(
        r"^\.\. (\w+)-command\n\.\. code-block:: sh\n\n    (.+\n)$",
        README,
        re.MULTILINE,
    )

    assert ["demo", "test", "contributor"] == [name for name, _ in found]
    assert blocks_of_readme("sh")[1:] == [command for _, command in found]
