"""What is run by hand finds what it imports."""

import ast
import importlib.util
import tomllib
from pathlib import Path

import pytest

pytest.importorskip("redis.asyncio")
pytest.importorskip("rich")


def imported(path):
    """Return what a module imports at its top."""
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        match node:
            case ast.ImportFrom(str(module)):
                found.add(module)
            case ast.Import(aliases):
                found |= {each.name for each in aliases}
    return found


def test_modules_that_tools_import_exist():
    """No test runs the tools, so a module that moves would be missed by nobody."""
    missing = {
        path.name: name
        for path in Path(__file__).parent.rglob("*.py")
        for name in imported(path)
        if importlib.util.find_spec(name) is None
    }

    assert {} == missing


def test_paths_that_mutation_tests_name_exist():
    """One that has moved would end them before the first mutant."""
    root = Path(__file__).parents[2]
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    mutmut = settings["tool"]["mutmut"]
    deselected = (
        argument.removeprefix("--deselect=").partition("::")[0]
        for argument in mutmut["pytest_add_cli_args"]
        if argument.startswith("--deselect=")
    )
    named = [
        *mutmut["only_mutate"],
        *mutmut["pytest_add_cli_args_test_selection"],
        *deselected,
    ]

    assert [] == [path for path in named if not any(root.glob(path))]
