"""Counting lines of code."""

import textwrap

import pytest
from code_size import FOLDERS, Size, size_of, size_of_folder


def test_lines_of_code_are_neither_empty_nor_words():
    """Comments and docstrings do not count, those below an attribute neither."""
    source = '''
        """A module.

        With an example.
        """

        from typing import Any, cast

        LIMIT: Any = 1  # the least
        """The limit."""

        # What follows is a function.
        def limit(
            other,
        ):
            """Return it."""
            text = """of
            two lines"""
            return cast("int", LIMIT) or buffer.cast("B")  # type: ignore[no-any-return]
    '''

    assert Size(1, code_lines=8, imports=1, anys=2, casts=1, ignores=1) == (
        size_of(textwrap.dedent(source))
    )


def test_module_without_code_is_none():
    """The ``__init__`` of a room holds nothing."""
    assert Size() == size_of('"""A room."""\n')


@pytest.mark.slow
def test_package_grows_no_larger():
    """Of modules and of open types there are no more; lower the bounds with them.

    What cannot be typed has a name: :mod:`aioretry_smithy._call.outcome`.
    """
    size = size_of_folder(FOLDERS[0])

    assert 150 >= size.modules
    assert 326 >= size.anys
    assert 22 >= size.casts + size.ignores
