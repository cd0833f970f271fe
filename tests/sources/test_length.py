"""Check the tests: a file is about one behaviour, and so not long."""

from __future__ import annotations

from pathlib import Path

from parsed import text_of

TESTS = Path(__file__).parents[1]
MAX_LINES = 500


def test_no_test_file_has_more_than_500_lines():
    """A longer one is about several behaviours: it is cut, and each part named."""
    lengths = {
        path.relative_to(TESTS).as_posix(): len(text_of(path).splitlines())
        for path in TESTS.rglob("*.py")
    }

    assert {} == {path: n for path, n in lengths.items() if n > MAX_LINES}
