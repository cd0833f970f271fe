"""Functions of the user's, by their names on the command line."""

from __future__ import annotations

import sys

import pytest

from aioretry_smithy._cli.arguments import UsageError
from aioretry_smithy._cli.user_function import find_function

SOURCE = """
from __future__ import annotations
import dataclasses
import neighbour_of_orders

@dataclasses.dataclass
class Chains:
    name: str

    def ours():
        return neighbour_of_orders.ANSWER

def ours():
    return neighbour_of_orders.ANSWER
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a module, what it imports, and some that are broken."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "modules", {**sys.modules})
    files = {
        "orders_of_tests.py": SOURCE,
        "neighbour_of_orders.py": "ANSWER = 42",
        "typo_of_tests.py": "def broken(:",
        "quitter_of_tests.py": "raise SystemExit(3)",
        "broken_of_tests.py": "raise KeyError('token')",
    }
    for name, source in files.items():
        (tmp_path / name).write_text(source)
    return tmp_path


@pytest.mark.parametrize("function", ["ours", "Chains.ours"])
def test_function_of_a_module(folder, monkeypatch, function):
    """Modules of the working directory are found, and what they import."""
    monkeypatch.chdir(folder)

    assert 42 == find_function(f"orders_of_tests:{function}")()


def test_function_of_a_file(folder):
    """A file anywhere, which may import what lies beside it."""
    assert 42 == find_function(f"{folder}/orders_of_tests.py:ours")()


def test_function_of_a_file_in_the_working_directory(folder, monkeypatch):
    """The path may be relative."""
    monkeypatch.chdir(folder)

    assert 42 == find_function("orders_of_tests.py:ours")()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("orders_of_tests", "(expected: MODULE:FUNCTION or path/file.py:FUNCTION)"),
        (":ours", "':ours' (expected: MODULE:FUNCTION or path/file.py:FUNCTION)"),
        ("orders_of_tests:", "'orders_of_tests:' (expected: MODULE"),
        ("orders_of_tests:theirs", "has no attribute 'theirs'"),
        ("nothing_of_tests:ours", "cannot import 'nothing_of_tests': ModuleNotFound"),
        ("nothing_of_tests.py:ours", "cannot import 'nothing_of_tests.py': FileNotF"),
        (".:ours", "cannot import '.': "),
        ("typo_of_tests:ours", "cannot import 'typo_of_tests': SyntaxError: invalid"),
        ("quitter_of_tests:ours", "cannot import 'quitter_of_tests': SystemExit: 3"),
        ("broken_of_tests.py:ours", "'broken_of_tests.py': KeyError: 'token'"),
    ],
)
def test_what_cannot_be_used_is_named(folder, monkeypatch, name, message):
    """Each mistake is one clear text."""
    monkeypatch.chdir(folder)
    with pytest.raises(UsageError) as caught:
        find_function(name)

    assert message in str(caught.value)
