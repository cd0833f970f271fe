"""How the chains of a simulation did, in words."""

from __future__ import annotations

import pytest
from simulated import settings

from aioretry_smithy._simulation.result import SimulatedRun, SimulationResult
from aioretry_smithy._simulation.table import conditions, rows


def shown(outage, duration=40.0):
    return settings(clients=5, capacity=10.5, outage=outage, duration=duration)


def row_of(answered, *, attempts=4, calls=4, outage=(1.0, 2.0, 0.2)):
    """Return the row of a run with as many calls in each second."""
    many = len(answered)
    run = SimulatedRun((calls,) * many, (attempts,) * many, tuple(answered), outage)
    result = SimulationResult(shown(outage), {"ours": run})
    head, row = rows(result)
    return dict(zip(head, row, strict=True))


def test_measures_have_a_name_each():
    """The head says what stands below."""
    row = row_of([4] * 10 + [0] * 10 + [4] * 20, attempts=6)

    assert {
        "chain": "ours",
        "load": "1.50",
        "recovery": "17 s",
        "answered": "75.0%",
        "attempts": "1.50",
        "answered, over time": "█████▁▁▁▁▁██████████",
    } == row


def test_chain_that_does_not_recover():
    """It never does, as far as one can see."""
    assert "never" == row_of([4, 0, 0, 0])["recovery"]


def test_without_an_outage_there_is_no_recovery():
    """What is measured in an outage is a dash."""
    row = row_of([4] * 40, outage=None)

    assert ("-", "-") == (row["load"], row["recovery"])


@pytest.mark.parametrize(
    ("answered", "blocks"),
    [([4], "█" * 20), ([4, 0], "█" * 10 + "▁" * 10), ([2] * 40, "▅" * 20)],
)
def test_time_is_shown_in_as_many_blocks(answered, blocks):
    """However long it was."""
    assert blocks == row_of(answered)["answered, over time"]


def test_seconds_without_calls_are_a_gap():
    """Nothing failed in them."""
    assert " " * 20 == row_of([0] * 20, calls=0)["answered, over time"]


def test_conditions_are_two_sentences():
    """The calls, and the server with its outage."""
    assert (
        "5 clients make 4 calls a second for 40 s.",
        "The server can answer 10.5 a second, from second 1 to 3.5 only 20% of that.",
    ) == conditions(shown((1.0, 2.5, 0.2)))
    assert "The server can answer 10.5 a second." == conditions(shown(None))[1]
