"""The idioms of stamina and what stands in their place: what is alike, what is not."""

import asyncio

import pytest

pytest.importorskip("stamina")

import stamina
from functions import GONE, Different, SameCalls

pytestmark = [pytest.mark.virtual_time, pytest.mark.usefixtures("_clock_of_the_loop")]

SOON = OSError("temporary")


@pytest.fixture(autouse=True)
def _no_lines_for_retries():
    """Its hooks go by what else is installed."""
    stamina.instrumentation.set_on_retry_hooks([])
    yield
    stamina.instrumentation.set_on_retry_hooks(None)


@pytest.mark.parametrize(
    ("name", "outcomes", "expected"),
    [
        ("fetch_three_times", [GONE, GONE, "a"], "a"),
        ("fetch_three_times", [GONE, GONE, GONE], ConnectionResetError),
        ("fetch_three_times", [ValueError()], ValueError),
        ("fetch_within_ten_seconds", [GONE, GONE, "a"], "a"),
        ("fetch_patiently", [GONE, GONE, "a"], "a"),
        ("fetch_when_temporary", [SOON, "a"], "a"),
        ("fetch_when_temporary", [OSError("for good")], OSError),
        ("fetch_in_a_loop", [GONE, GONE, "a"], "a"),
        ("fetch_once", [GONE], ConnectionResetError),
        ("fetch_twice_at_once", [GONE, GONE], ConnectionResetError),
        ("fetch_nested", [GONE, GONE, "a"], "a"),
    ],
)
class TestSameCalls(SameCalls):
    """It raises what it does not retry, and all retry what they are told to."""


class TestDifferent(Different):
    """It adds up to half a second to each wait."""

    waits = (0.5, 1.5, 4.0)
    added = 0.5


async def test_retries_in_tests_cost_no_time(either, failing, outcome_of):
    """As many as were asked for."""
    _, seconds = await outcome_of(either.fetch_twice_at_once(failing([GONE] * 2)))

    assert 0.0 == seconds


async def test_retries_are_switched_off_for_a_block(theirs, ours, failing, outcome_of):
    """Not for the process, with all that runs at the same time."""
    attempts = []
    for module in (theirs, ours):
        other = failing([GONE] * 3)
        block = module.fetch_once(failing([GONE], seconds=5.0))
        await asyncio.gather(
            outcome_of(block), outcome_of(module.fetch_three_times(other))
        )
        attempts.append(len(other.starts))

    assert [1, 3] == attempts
