"""Importing the package loads next to nothing; its names come when asked for."""

import ast
import importlib
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

import aioretry_smithy
from aioretry_smithy import _facade

FACADES = [*_facade.PUBLIC]

HEAVY = {
    *"""
    cgi concurrent.futures.process configparser decimal difflib doctest fractions html
    importlib.metadata multiprocessing pydoc sqlite3 statistics tomllib unittest
    urllib.request xml
    """.split()
}
"""Modules that take long to load; aiohttp may load them itself."""

NEW = "sorted({*sys.modules} - before)"


def told_by(script):
    """Return what a process of its own prints last, as JSON."""
    process = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        capture_output=True,
        check=False,
        text=True,
    )
    assert "" == process.stderr
    return json.loads(process.stdout)


def loaded_by(statement):
    """Return the modules that a statement loads once aiohttp is there."""
    found = told_by(
        "import json, sys, aiohttp; before = {*sys.modules}\n"
        f"{statement}\n"
        f"print(json.dumps({NEW}))"
    )
    assert isinstance(found, list)
    return found


@pytest.mark.parametrize(
    "statement",
    [
        "from aioretry_smithy import SessionBuilder; SessionBuilder.standard()",
        "from aioretry_smithy import RetryingClient, RetryStrategy",
    ],
)
def test_usual_chains_load_little(statement):
    """Nothing of what only some need: other decorators, XML, what suggests names."""
    loaded = loaded_by(statement)

    assert set() == {*loaded} & HEAVY
    rooms = {name.split(".")[1] for name in loaded if "aioretry_smithy." in name}
    assert {"_retry"} == rooms & {
        *("_hedging", "_limits", "_report", "_resuming", "_retry", "redis"),
        *("_telemetry", "_tokens", "testing"),
    }


def test_bare_import_loads_three_modules():
    """The package, its facade for Smithy's names, and what finds the names."""
    loaded = loaded_by("import aioretry_smithy")

    assert ["aioretry_smithy", "aioretry_smithy._facade", "aioretry_smithy.smithy"] == (
        loaded
    )


@pytest.mark.parametrize("package", FACADES)
def test_table_and_types_and_all_have_the_same_names(package):
    """What runs, what type checkers read and what a star imports cannot differ."""
    path = importlib.import_module(package).__file__
    tree = ast.parse(Path(path).read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    assert "_typing.TYPE_CHECKING" == ast.unparse(block.test)
    imported = [
        (alias, importlib.util.resolve_name("." * node.level + node.module, package))
        for node in block.body
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    ]
    # Only a name that is imported as itself is public to type checkers.
    read = {
        alias.asname: where.removeprefix("aioretry_smithy")
        for alias, where in imported
        if alias.asname == alias.name
    }

    assert _facade.PUBLIC[package] == read
    assert {*_facade.PUBLIC[package]} == {*importlib.import_module(package).__all__}


def test_dir_has_names_that_are_not_loaded():
    """Completion in a shell knows them, and loads nothing."""
    missing, loaded = told_by(
        "import importlib, json\n"
        f"packages = [importlib.import_module(name) for name in {FACADES}]\n"
        "print(json.dumps([\n"
        "    [name for each in packages for name in {*each.__all__} - {*dir(each)}],\n"
        "    [name for each in packages for name in {*each.__all__} & {*vars(each)}],\n"
        "]))"
    )

    assert [] == missing
    assert [] == loaded


@pytest.mark.parametrize(
    "statement",
    ["from aioretry_smithy import smithy", "import aioretry_smithy.smithy as smithy"],
)
def test_module_of_a_facade_is_found_without_an_import_of_its_own(statement):
    """Whether it is there does not depend on what somebody has imported before."""
    seen = told_by(
        f"import json\n{statement}\n"
        "before = 'sync' in vars(smithy)\n"
        "name = smithy.sync.StandardRetryStrategy.__module__\n"
        "print(json.dumps([before, 'sync' in dir(smithy), name]))"
    )

    assert [False, True, "aioretry_smithy.smithy.sync"] == seen


@pytest.mark.slow
def test_star_imports_all_names():
    """A star loads all of them, each from its own facade."""
    missing = told_by(
        "import importlib, json\n"
        "missing = []\n"
        f"for package in {FACADES}:\n"
        "    found = {}\n"
        "    exec(f'from {package} import *', found)\n"
        "    missing += {*importlib.import_module(package).__all__} - {*found}\n"
        "print(json.dumps(missing))"
    )

    assert [] == missing


@pytest.mark.parametrize("package", FACADES)
def test_unknown_name_is_an_error_with_a_suggestion(package):
    """It names the package, and carries what Python takes suggestions from."""
    module = importlib.import_module(package)

    with pytest.raises(AttributeError) as caught:
        _ = module.RetryStategy

    assert f"module {package!r} has no attribute 'RetryStategy'" == str(caught.value)
    assert ("RetryStategy", module) == (caught.value.name, caught.value.obj)


def test_module_that_cannot_be_loaded_is_named(monkeypatch):
    """A fault in it does not look as if the facade had no such name."""
    fault = AttributeError("module 'aiohttp' has no attribute 'hdrs'")

    def fail(_name, _package):
        raise fault

    monkeypatch.setattr(_facade, "import_module", fail)
    monkeypatch.delattr(aioretry_smithy, "Report", raising=False)

    with pytest.raises(ImportError) as caught:
        _ = aioretry_smithy.Report

    assert "aioretry_smithy._report.report" == caught.value.name
    assert (
        "cannot load 'Report' from aioretry_smithy._report.report: "
        "module 'aiohttp' has no attribute 'hdrs'"
    ) == str(caught.value)
    assert fault is caught.value.__cause__


STRANGERS = """
import inspect, json, sys
{statement}
from aioretry_smithy import _facade
print(json.dumps([
    f"{{package}}.{{name}} says {{found.__module__}}"
    for package, names in _facade.PUBLIC.items()
    for name, where in names.items()
    if (module := sys.modules.get("aioretry_smithy" + where))
    if inspect.isclass(found := getattr(module, name)) or inspect.isfunction(found)
    if found.__module__ != package
]))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "statement",
    [
        "from aioretry_smithy import SessionBuilder; SessionBuilder.standard()",
        "from aioretry_smithy import SessionBuilder; SessionBuilder.standard(rate=len)",
        "from aioretry_smithy.testing import ask",
        "from aioretry_smithy.smithy import sync",
        "from aioretry_smithy.smithy import strategy_from_env",
    ],
)
def test_what_came_along_says_where_it_is_public(statement):
    """A class that nobody asked for has its public name in tracebacks and pickles."""
    assert [] == told_by(STRANGERS.format(statement=statement))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "needed"),
    [
        ("limits", "limits"),
        ("opentelemetry", "opentelemetry"),
        ("prometheus", "prometheus_client"),
        ("redis", "redis"),
    ],
)
def test_extras_say_where_what_they_load_is_public(module, needed):
    """They load what is public elsewhere."""
    pytest.importorskip(needed)

    statement = f"import aioretry_smithy.{module}"

    assert [] == told_by(STRANGERS.format(statement=statement))


@pytest.mark.slow
def test_names_that_came_along_serve_annotations():
    """``typing.get_type_hints`` looks names up in the facade without asking it."""
    names = told_by(
        "import json, typing\n"
        "from aioretry_smithy.smithy import CallError\n"
        "print(json.dumps([*typing.get_type_hints(CallError)]))"
    )

    assert {"fault", "retry_after"} <= {*names}


@pytest.mark.slow
def test_pickles_load_what_they_need():
    """A process that has only the package reads what another one wrote."""
    text = told_by(
        "import base64, json, pickle\n"
        "from aioretry_smithy import Endpoint, RetrySafety\n"
        "whole = pickle.dumps([Endpoint('http://a.test'), RetrySafety.YES])\n"
        "print(json.dumps(base64.b64encode(whole).decode()))"
    )

    read = told_by(
        "import base64, json, pickle, aioretry_smithy\n"
        f"print(json.dumps([*map(str, pickle.loads(base64.b64decode({text!r})))]))"
    )

    assert ["a.test", "yes"] == read


THREADS = """
import json, random, sys, threading
import aioretry_smithy, aioretry_smithy.smithy, aioretry_smithy.testing

sys.setswitchinterval(1e-5)
packages = aioretry_smithy, aioretry_smithy.smithy, aioretry_smithy.testing
names = [(package, name) for package in packages for name in package.__all__]
start, faults = threading.Barrier(8), []

def load(dice):
    mine = dice.sample(names, len(names))
    start.wait()
    for package, name in mine:
        try:
            getattr(package, name)
        except BaseException as fault:
            faults.append(repr(fault))

threads = [threading.Thread(target=load, args=[random.Random(n)]) for n in range(8)]
for each in threads:
    each.start()
for each in threads:
    each.join()
print(json.dumps(faults))
"""


@pytest.mark.slow
def test_threads_may_load_at_the_same_time():
    """None of them sees a module that another one has loaded half."""
    assert [] == told_by(THREADS)


@pytest.mark.slow
def test_name_can_be_replaced_for_a_while():
    """A mock takes the place of a name that was not loaded, and gives it back."""
    seen = told_by(
        "import json, aioretry_smithy\n"
        "from unittest import mock\n"
        "with mock.patch('aioretry_smithy.RetryingClient', 1):\n"
        "    inside = aioretry_smithy.RetryingClient, aioretry_smithy.Endpoint\n"
        "after = aioretry_smithy.RetryingClient\n"
        "print(json.dumps([inside[0], inside[1].__name__, after.__name__]))"
    )

    assert [1, "Endpoint", "RetryingClient"] == seen


@pytest.mark.slow
def test_reload_keeps_what_is_loaded():
    """Classes stay the same ones, and further names are found."""
    seen = told_by(
        "import importlib, json, aioretry_smithy as package\n"
        "before = package.Endpoint\n"
        "importlib.reload(package)\n"
        "print(json.dumps([package.Endpoint is before, package.Report.__name__]))"
    )

    assert [True, "Report"] == seen
