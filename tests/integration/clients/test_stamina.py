"""The idioms of stamina and what stands in their place: what is alike, what is not."""

from __future__ import annotations

import asyncio
import itertools

import pytest

pytest.importorskip("stamina")

import stamina

from aioretry_smithy import ResponseTimeoutError

pytestmark = [
    pytest.mark.virtual_time,
    pytest.mark.usefixtures("_clock_of_the_loop"),
]

GONE = ConnectionResetError("gone")
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
async def test_same_calls_with_the_same_outcome(
    either, failing, name, outcomes, expected, outcome_of
):
    """Each function asks as often as the one it stands for."""
    client = failing(outcomes)

    result, _ = await outcome_of(getattr(either, name)(client))

    assert expected == result
    assert len(outcomes) == len(client.starts)


async def test_deadline_is_kept(theirs, ours, failing, outcome_of):
    """An attempt that takes too long is cut."""
    silent = {"outcomes": ["late"], "seconds": 60.0}
    late = await outcome_of(theirs.fetch_within_ten_seconds(failing(**silent)))
    cut = await outcome_of(ours.fetch_within_ten_seconds(failing(**silent)))

    assert [("late", 60.0), (ResponseTimeoutError, 10.0)] == [late, cut]


async def test_jitter_is_a_share_of_the_wait(theirs, ours, failing):
    """And not so many seconds of any wait."""
    clients = [failing([GONE, GONE, GONE, "a"]) for _ in range(2)]
    await theirs.fetch_patiently(clients[0])
    await ours.fetch_patiently(clients[1])
    added, scaled = (
        [later - earlier for earlier, later in itertools.pairwise(client.starts)]
        for client in clients
    )
    shares = [wait / plain for wait, plain in zip(scaled, (0.5, 1.5, 4.0), strict=True)]

    assert [0.75, 1.75, 4.0] == pytest.approx(added, abs=0.251)
    assert [1.0] * 3 == pytest.approx(shares, abs=0.201)


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


async def test_retries_do_not_multiply(theirs, ours, failing, outcome_of):
    """A call that was given up inside is not tried again outside."""
    clients = [failing(itertools.repeat(GONE)) for _ in range(2)]
    await outcome_of(theirs.fetch_nested(clients[0]))
    await outcome_of(ours.fetch_nested(clients[1]))

    assert [9, 3] == [len(client.starts) for client in clients]
