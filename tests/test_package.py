"""The facade says what is public, each module imports alone, extras may be missing."""

import configparser
import importlib
import importlib.metadata
import importlib.util
import inspect
import json
import pkgutil
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

import aioretry_smithy
from aioretry_smithy import DecoratingClient

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.rst").read_text(encoding="utf-8")

EXTRAS = {
    "aioretry_smithy._cli.rich_output": "rich",
    "aioretry_smithy._log.rich_tree": "rich",
    "aioretry_smithy._telemetry.spans": "opentelemetry",
    "aioretry_smithy._telemetry.instruments": "opentelemetry",
    "aioretry_smithy.limits": "limits.aio",
    "aioretry_smithy.opentelemetry": "opentelemetry",
    "aioretry_smithy.prometheus": "prometheus_client",
}
"""The modules that import an optional part, which may be missing.

``limits`` alone is a folder of tests, too, and so is ``redis``.
"""

MODULES = [
    "aioretry_smithy",
    *(
        module.name
        for module in pkgutil.walk_packages(
            aioretry_smithy.__path__, "aioretry_smithy."
        )
        if module.name not in EXTRAS or importlib.util.find_spec(EXTRAS[module.name])
    ),
]


def test_facade_lists_all_that_is_public():
    """Each public name of the namespace is in ``__all__``, and no other."""
    # They are there once they are asked for.
    assert all(hasattr(aioretry_smithy, name) for name in aioretry_smithy.__all__)
    public = {
        name
        for name, value in vars(aioretry_smithy).items()
        if not name.startswith("_")
        and not isinstance(value, ModuleType)
        and name != "annotations"
    }

    assert public == set(aioretry_smithy.__all__) - {"__version__"}


def test_facade_hides_where_things_are_made():
    """Public classes and functions say that they come from the facade."""
    strangers = {
        name: value.__module__
        for name in aioretry_smithy.__all__
        if inspect.isroutine(value := getattr(aioretry_smithy, name))
        or inspect.isclass(value)
        if value.__module__ != "aioretry_smithy"
    }

    assert {} == strangers


def test_errors_about_arguments_name_public_classes():
    """Where a method is inherited from a private class, they name none."""
    named = set()
    for client in (getattr(aioretry_smithy, name) for name in aioretry_smithy.__all__):
        if inspect.isclass(client) and issubclass(client, DecoratingClient):
            makers = [name for name in dir(client) if name.startswith("new_")]
            for make in (client, *(getattr(client, name) for name in makers)):
                with pytest.raises(TypeError) as caught:
                    make(no_such_argument=1)
                called, _, _ = str(caught.value).partition("(")
                named.add(called.rpartition(".")[0])

    assert "RetryingClient" in named
    assert set() == named - {"", *aioretry_smithy.__all__}


def test_version_is_the_distribution_s():
    """The version has one source, the metadata of the distribution."""
    version = importlib.metadata.version("aioretry-smithy")

    assert version == aioretry_smithy.__version__


def test_changelog_begins_with_the_version():
    """Before it is released, its changes may still be called unreleased."""
    metadata = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    version = metadata["project"]["version"]
    release, unfinished = re.fullmatch(r"([\d.]+?)(rc\d+|\.dev\d+)?", version).groups()
    changelog = (ROOT / "docs/changelog.rst").read_text(encoding="utf-8")
    newest = re.findall(r"^(.+)\n-+$", changelog, re.MULTILINE)[0]

    assert release == newest.split()[0] or (unfinished and "Unreleased" == newest)


def test_oldest_aiohttp_allowed_is_the_oldest_tested():
    """The metadata and the README make promises that environments of tox check."""
    metadata = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (requirement,) = (
        each
        for each in metadata["project"]["dependencies"]
        if re.match(r"aiohttp\b", each)
    )
    floors = re.findall(r">=([\d.]+)", requirement)
    tox = (ROOT / "tox.ini").read_text(encoding="utf-8")
    tested = re.findall(r"aiohttp==([\d.]+)", tox)
    oldest = min(tested, key=lambda version: [*map(int, version.split("."))])
    readme = " ".join(README.split())

    assert [oldest] == floors
    assert f"``aiohttp`` {oldest} or newer" in readme
    assert "tested with the oldest and the newest" in readme


def test_oldest_extras_allowed_are_tested():
    """One environment has the first version of each library that an extra adds."""
    metadata = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = metadata["project"]["optional-dependencies"].values()
    allowed = {each.replace(">=", "==") for libraries in extras for each in libraries}
    tox = (ROOT / "tox.ini").read_text(encoding="utf-8")
    tested = re.findall(r"py311-aiohttp312: (\S+==\S+)", tox)

    assert set() == allowed - {*tested}


def test_long_tests_have_all_extras():
    """They run in one environment only: what it lacks would be tested in none."""
    tox = configparser.RawConfigParser()
    tox.read(ROOT / "tox.ini", encoding="utf-8")
    metadata = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = tox["testenv:long"].get("extras", tox["testenv"]["extras"])

    assert {*metadata["project"]["optional-dependencies"]} == {*extras.split(", ")}


def readme_on_the_index():
    """Return the README as the package index shows it."""
    hook = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
        "hatch"
    ]["metadata"]["hooks"]["fancy-pypi-readme"]
    text = README
    for each in hook["substitutions"]:
        text = re.sub(each["pattern"], each["replacement"], text)
    return text


def test_readme_links_to_pages_that_exist():
    """In a checkout by their files, on the package index where they are published."""
    linked = re.findall(r"<(docs/\S+\.rst)>`__", README)
    pages = re.findall(r"<https://\S+?/en/latest/(\S+?)\.html>", readme_on_the_index())

    assert linked
    assert [] == [each for each in linked if not (ROOT / each).is_file()]
    assert linked == [f"docs/{page}.rst" for page in pages]


def test_demo_is_played_by_the_checkout_where_there_is_one():
    """Then nothing is built, only what it imports installed; else the distribution."""
    command = re.compile(
        r"^ +python3 -m venv \.venv && \.venv/bin/pip install --quiet "
        r"(?:--no-compile )?(.+) && \.venv/bin/python -m aioretry_smithy demo$",
        re.MULTILINE,
    )
    metadata = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project = metadata["project"]
    known = [*project["dependencies"], *project["optional-dependencies"]["cli"]]
    (installed,) = command.findall(README)

    assert {*installed.split()} <= {re.split(r"\W", each)[0] for each in known}
    assert ['"aioretry-smithy[cli]"'] == command.findall(readme_on_the_index())


def test_pages_are_published_from_what_tox_builds_them_with():
    """The host of the pages installs the same extras and the same group."""
    host = (ROOT / ".readthedocs.yaml").read_text(encoding="utf-8")
    tox = configparser.RawConfigParser()
    tox.read(ROOT / "tox.ini", encoding="utf-8")
    builds, *_ = tox["testenv:docs"]["dependency_groups"].split(", ")
    used = tox["testenv"]["extras"], builds
    (installed,) = re.findall(r'"\.\[(.+)\]" --group (\w+)', host)
    (configuration,) = re.findall(r"configuration: (.+)", host)

    assert (used[0].replace(", ", ","), used[1]) == installed
    assert (ROOT / configuration).is_file()


IMPORT_EACH_FIRST = """
import json, sys, traceback

import aioretry_smithy

failures, always = {}, {*sys.modules}
for module in sys.argv[1:]:
    for name in {*sys.modules} - always:
        if name.partition(".")[0] == "aioretry_smithy":
            del sys.modules[name]
    try:
        __import__(module)
    except BaseException:
        failures[module] = traceback.format_exc()
print(json.dumps(failures))
"""


@pytest.mark.long
def test_each_module_imports_alone():
    """Each module can be imported right after the facade, without any warning.

    The facade is imported first in any case: Python runs the package's own
    ``__init__`` before any module in it.
    """
    process = subprocess.run(
        [sys.executable, "-W", "error", "-c", IMPORT_EACH_FIRST, *MODULES],
        capture_output=True,
        check=True,
        text=True,
    )

    assert "" == process.stderr
    assert {} == json.loads(process.stdout)


@pytest.mark.parametrize(
    ("extra", "module", "package"),
    [
        ("limits", "limits", "limits"),
        ("opentelemetry", "opentelemetry", "opentelemetry"),
        ("prometheus", "prometheus", "prometheus_client"),
    ],
)
def test_missing_extra_is_named(monkeypatch, extra, module, package):
    """With the command that installs it, and the name of the module as ever."""
    importers = (f"aioretry_smithy.{module}", "aioretry_smithy._telemetry.spans")
    for name in [*sys.modules]:
        if name in importers or name.partition(".")[0] == package:
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)

    with pytest.raises(ModuleNotFoundError) as caught:
        importlib.import_module(f"aioretry_smithy.{module}")
    expected = f'{package} is missing: pip install "aioretry-smithy[{extra}]"'

    assert expected == str(caught.value)
    assert package == caught.value.name.partition(".")[0]


def test_missing_extra_is_named_where_srv_records_are_asked_for(monkeypatch):
    """Not before: other groups of endpoints do without."""
    for name in [*sys.modules]:
        if name.partition(".")[0] == "dns":
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "dns", None)
    srv = importlib.import_module("aioretry_smithy._endpoints.sources")
    expected = 'dns is missing: pip install "aioretry-smithy[dns]"'

    with pytest.raises(ModuleNotFoundError, match=re.escape(expected)):
        srv.SrvLookup("_http._tcp.orders.example.com")
