"""Counting bytecodes gives the same number each time."""

import pytest
from bytecodes import bytecodes, bytecodes_of_a_call
from scenarios import FLAKY
from variants import OUTSIDE, bare, ours

from aioretry_smithy import Backoff


async def test_a_call_without_us_runs_no_bytecode_of_ours():
    """The session, the event loop and the stub are not counted."""
    assert 0 == (await bytecodes_of_a_call(bare)).total()


def test_the_same_again_runs_as_many_bytecodes():
    """Each instruction counts once, however often it has run before."""
    backoff = Backoff.exponential()
    with bytecodes() as once:
        backoff.next_delay(1)
    with bytecodes() as twice:
        backoff.next_delay(1)
        backoff.next_delay(1)

    assert {code: 2 * count for code, count in once.items()} == twice
    assert once.total() > 0


@pytest.mark.virtual_time
@pytest.mark.parametrize("statuses", [(200,), FLAKY], ids=["good", "failing"])
async def test_every_call_of_a_kind_runs_as_many_bytecodes(statuses):
    """Neither chance nor the machine has a part in it."""
    (variant,) = (each for each in ours() if each.name == OUTSIDE)
    first = await bytecodes_of_a_call(variant.open, statuses)
    second = await bytecodes_of_a_call(variant.open, statuses)

    assert first == second
