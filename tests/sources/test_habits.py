"""Check lengths, folders, first lines, and what forges and tools look for."""

import ast
import configparser
import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest
import yaml
from parsed import nodes_in, nodes_of, text_of

import aioretry_smithy

ROOT = Path(__file__).parents[2]
WORKFLOW = ROOT / ".github/workflows/checks.yml"
TEMPLATES = sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml"))


def text_at(name):
    return (ROOT / name).read_text(encoding="utf-8")


def command_of_readme():
    """Return the README's test command as it stands there."""
    marked = r"^\.\. test-command\n\.\. code-block:: sh\n\n +(.+)$"
    (command,) = re.findall(marked, text_at("README.rst"), re.MULTILINE)
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
    return tomllib.loads(text_at("pyproject.toml"))["dependency-groups"]


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
    tox = re.findall(r"\bpy31(\{[\d,]+\}|\d)", text_at("tox.ini"))
    named = {f"3.1{digit}" for digits in tox for digit in re.findall(r"\d", digits)}
    classifiers = re.findall(r"Python :: (3\.\d+)", text_at("pyproject.toml"))
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
    (local,) = yaml.safe_load(text_at(".pre-commit-config.yaml"))["repos"]
    hooks = {hook["id"]: hook["additional_dependencies"] for hook in local["hooks"]}

    assert {
        "ruff-check": groups()["lint"],
        "ruff-format": groups()["lint"],
        "mypy": requirements_of_tox(),
    } == hooks


def test_contributing_has_the_readme_s_command_of_readme():
    """It stands where forges look, and leads to the page."""
    page = text_at(".github/CONTRIBUTING.md")
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


def folders(root):
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


MAX_LINES = 500


def test_no_test_file_has_more_than_500_lines():
    """A longer one is about several behaviours: it is cut, and each part named."""
    lengths = {
        path.relative_to(TESTS).as_posix(): len(text_of(path).splitlines())
        for path in TESTS.rglob("*.py")
    }

    assert {} == {path: n for path, n in lengths.items() if n > MAX_LINES}


MOST = 0.2
"""Share of pronouns and fillers in a first line; it only goes down."""

FILLERS = frozenset(
    "also another anything as else everything he here it its itself nobody nothing"
    " one ones other others same so somebody something such that their theirs them"
    " then there these they this those thus too what whatever where which who whom"
    " whose".split()
)

PICTURES = frozenset(
    "care goal goals heed heeds lend lends lent passage passages rehearsal rehearsals"
    " rehearse rehearsed rehearses standing told".split()
)
"""Pictures of what has a name: a permit, a placeholder, a snapshot, a weak reference,
the hot path, panic mode, a fallback."""

REFERENCE = re.compile(r"``[^`]*``|:\w+:`[^`]*`")
WORD = re.compile(r"[A-Za-z']+")


def first_lines(nodes):
    """Yield the number and the first paragraph of each docstring in a module."""
    for node in nodes:
        body = getattr(node, "body", None)
        # That of a lambda is no list.
        for statement in body if isinstance(body, list) else ():
            match statement:
                case ast.Expr(value=ast.Constant(value=str(docstring))):
                    first = docstring.strip().split("\n\n")[0]
                    yield statement.lineno, " ".join(first.split())


def words_of(line):
    """Return the words of a line in lower case; a reference is one noun."""
    return [word.lower() for word in WORD.findall(REFERENCE.sub("noun", line))]


def share_of_fillers(line):
    words = words_of(line)
    return sum(word in FILLERS for word in words) / len(words)


def names_in(nodes):
    """Yield the number and the name of all that a module defines."""
    for node in nodes:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.lineno, node.name
            case ast.arg():
                yield node.lineno, node.arg
            case ast.Name(ctx=ast.Store()):
                yield node.lineno, node.id
            case ast.Attribute(ctx=ast.Store()):
                yield node.lineno, node.attr


def parts_of(name):
    """Return the words that a name is made of."""
    return {part.lower() for part in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)}


def found(judge, things_in):
    """Return what is at fault, as ``file:line: thing``."""
    return [
        f"{path.relative_to(PACKAGE)}:{number}: {thing}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for number, thing in things_in(nodes_of(path))
        if judge(thing)
    ]


def test_first_lines_name_what_they_are_about():
    """Pronouns refer to what an editor's hover does not show."""
    assert [] == found(lambda line: share_of_fillers(line) > MOST, first_lines)


def test_first_lines_have_the_words_of_the_field():
    """A mechanism that has a name is called by it."""
    assert [] == found(lambda line: PICTURES & {*words_of(line)}, first_lines)


def test_names_are_no_pictures():
    """A name says what readers know from elsewhere."""
    assert [] == found(lambda name: PICTURES & parts_of(name), names_in)


def test_line_of_pronouns_is_seen():
    """Half of the words are such; what is quoted counts as a noun."""
    assert 0.5 == share_of_fillers("Return what ``it`` there.")


def test_attributes_are_documented_too():
    """What stands below an attribute is its docstring; further paragraphs are free."""
    text = (
        'class A:\n    """Some\n    thing.\n\n    It."""\n    b: int\n    """Its."""\n'
    )

    assert [(2, "Some thing."), (7, "Its.")] == list(first_lines(nodes_in(text)))


def test_words_of_a_name_are_seen():
    """Both spellings of names have words."""
    assert [{"is", "lent"}, {"told", "of"}] == [*map(parts_of, ["_is_lent", "ToldOf"])]


def test_nodes_are_those_of_the_standard_library():
    """Faster than ``ast.walk``, and as complete."""
    text = Path(__file__).read_text(encoding="utf-8")
    expected = Counter(map(ast.dump, ast.walk(ast.parse(text))))

    assert expected == Counter(map(ast.dump, nodes_in(text)))


def test_file_is_parsed_once():
    """Each check walks through the same nodes."""
    assert nodes_of(Path(__file__)) is nodes_of(Path(__file__))
