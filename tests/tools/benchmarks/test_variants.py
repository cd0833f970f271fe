"""The chains that pages show are measured as they stand there."""

import re
import textwrap
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from bytecodes import bytecodes_of_a_call
from calling import getting
from variants import readme, standard

from aioretry_smithy import SessionBuilder

TEXT = (Path(__file__).parents[3] / "README.rst").read_text(encoding="utf-8")


def session_of_standard():
    return SessionBuilder.standard().build()


def session_of_the_readme():
    """Build what the second program of the README builds, by its own words."""
    _, program = re.findall(r"code-block:: python\n\n((?:    .*\n|\n)+)", TEXT)
    names = {}
    exec(compile(textwrap.dedent(program), "README.rst", "exec"), names)
    return names["builder"].build()


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("shown", "measured"),
    [
        pytest.param(session_of_the_readme, readme, id="README"),
        pytest.param(session_of_standard, standard, id="standard"),
    ],
)
async def test_a_chain_is_measured_as_it_is_shown(shown, measured):
    """A call that succeeds runs the same code, instruction by instruction.

    Only what happens after a failure is set: there are no waits, and nothing refuses.
    """

    @asynccontextmanager
    async def as_shown():
        async with shown() as session:
            yield getting(session)

    counts = await bytecodes_of_a_call(measured)

    assert await bytecodes_of_a_call(as_shown) == counts
    assert counts.total() > 0
