"""What forges and tools look for is there, and runs what the README and tox run."""

from __future__ import annotations

import configparser
import re
import tomllib
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parents[2]
WORKFLOW = ROOT / ".github/workflows/checks.yml"
TEMPLATES = sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml"))


def text_of(name):
    return (ROOT / name).read_text(encoding="utf-8")


def command_of_readme():
    """Return the README's test command as it stands there."""
    marked = r"^\.\. test-command\n\.\. code-block:: sh\n\n +(.+)$"
    (command,) = re.findall(marked, text_of("README.rst"), re.MULTILINE)
    return command


def on_windows(command):
    """Return a command as it is for cmd, where an environment has other folders."""
    return command.replace("python3 ", "python ").replace(
        ".venv/bin/", ".venv\\Scripts\\"
    )


def jobs():
    return yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))["jobs"]


def commands(job):
    steps = jobs()[job]["steps"]
    return [step["run"] for step in steps if step.get("name", "").startswith("Test")]


def groups():
    return tomllib.loads(text_of("pyproject.toml"))["dependency-groups"]


def requirements_of_tox():
    tox = configparser.RawConfigParser()
    tox.read(ROOT / "tox.ini", encoding="utf-8")
    return tox["tox"]["requires"].split()


def test_forge_runs_the_readme_s_command_of_readme():
    """It is the README's, word for word; Windows has other folders."""
    command = command_of_readme()

    assert [command, on_windows(command)] == commands("quick")


def test_forge_runs_everything_once():
    """``.ci/run`` runs both test commands."""
    assert ["bash .ci/run"] == commands("all")


def test_forge_has_each_python_that_tox_has():
    """Those that the metadata name, and the newest, which they may not name yet."""
    matrix = jobs()["quick"]["strategy"]["matrix"]
    setup = jobs()["all"]["steps"][1]["with"]["python-version"]
    tox = re.findall(r"\bpy31(\{[\d,]+\}|\d)", text_of("tox.ini"))
    named = {f"3.1{digit}" for digits in tox for digit in re.findall(r"\d", digits)}
    classifiers = re.findall(r"Python :: (3\.\d+)", text_of("pyproject.toml"))
    (script,) = ROOT.glob("tests/**/published/run.py")
    published = re.findall(r"PYTHONS = \((.+)\)", script.read_text(encoding="utf-8"))

    assert named == {*matrix["python"]}
    assert named == {*setup.split()}
    assert [", ".join(f'"{python}"' for python in sorted(named))] == published
    assert {*classifiers} <= named
    assert "3.11" in classifiers


def test_forge_has_three_systems():
    """Linux, macOS and Windows."""
    systems = jobs()["quick"]["strategy"]["matrix"]["os"]

    assert ["ubuntu", "macos", "windows"] == [name.split("-")[0] for name in systems]


def test_what_the_forge_runs_is_pinned_and_may_only_read():
    """Each action is a commit, with its version beside it."""
    text = WORKFLOW.read_text(encoding="utf-8")

    assert {"contents": "read"} == yaml.safe_load(text)["permissions"]
    used = re.findall(r"uses: (.+)", text)
    assert used
    pinned = r"actions/[\w-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+"
    assert [] == [each for each in used if not re.fullmatch(pinned, each)]
    assert not any("permissions" in job for job in jobs().values())


def test_hooks_have_the_versions_of_tox():
    """Those of the group ``lint``, and the tox that ``tox.ini`` asks for."""
    (local,) = yaml.safe_load(text_of(".pre-commit-config.yaml"))["repos"]
    hooks = {hook["id"]: hook["additional_dependencies"] for hook in local["hooks"]}

    assert {
        "ruff-check": groups()["lint"],
        "ruff-format": groups()["lint"],
        "mypy": requirements_of_tox(),
    } == hooks


def test_contributing_has_the_readme_s_command_of_readme():
    """It stands where forges look, and leads to the page."""
    page = text_of(".github/CONTRIBUTING.md")
    command = command_of_readme()

    assert f"```sh\n{command}\n```" in page
    assert f"```bat\n{on_windows(command)}\n```" in page
    links = re.findall(r"\]\((.+?)\)", page)
    assert [] == [link for link in links if not (ROOT / ".github" / link).is_file()]


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_template_of_issues_is_one(path):
    """A form has a name, a description and fields; the settings have links."""
    template = yaml.safe_load(path.read_text(encoding="utf-8"))

    if path.stem == "config":
        assert all(
            {"name", "url", "about"} == {*link} for link in template["contact_links"]
        )
    else:
        assert {"name", "description", "labels", "body"} == {*template}
        asked = [field for field in template["body"] if field["type"] != "markdown"]
        assert all(field["attributes"]["label"] for field in asked)
        assert len(asked) == len({field["id"] for field in asked})
