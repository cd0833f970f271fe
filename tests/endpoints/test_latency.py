"""Estimates of how long endpoints take.

Of the cases of endpoints.md (f): 49, 50, 51, 97.
"""

from __future__ import annotations

import math

import pytest

from aioretry_smithy._endpoints.state import LatencyEstimate

DECAYED = 1 / math.e
"""What is left of an estimate after one decay."""


@pytest.mark.parametrize(
    ("notes", "now", "expected"),
    [
        pytest.param([("note", 0.1, 0.0), ("note", 0.5, 0.1)], 0.1, 0.5, id="rises"),
        pytest.param(
            [("note", 1.0, 0.0), ("note", 0.1, 10.0)],
            10.0,
            DECAYED + 0.1 * (1 - DECAYED),
            id="falls by the age of what was before",
        ),
        pytest.param([("note", 1.0, 5.0)], 5.0, 1.0, id="is as it was noted"),
        pytest.param([("note", 1.0, 5.0)], 25.0, DECAYED**2, id="falls unasked"),
        pytest.param(
            [("note", 1.0, 0.0), ("note_refusal", 0.001, 7.0)],
            7.0,
            1.0,
            id="a refusal renews what was",
        ),
        pytest.param([("note_refusal", 0.3, 0.0)], 0.0, 0.3, id="a first refusal"),
        pytest.param(
            [("note", 0.1, 0.0), ("note_refusal", 0.5, 1.0)],
            1.0,
            0.5,
            id="a slow refusal is slow",
        ),
        pytest.param(
            [("note", 0.5, 0.0), ("note_at_least", 0.1, 0.0)],
            0.0,
            0.5,
            id="one given up lowers nothing",
        ),
        pytest.param(
            [("note", 0.5, 0.0), ("note_at_least", 2.0, 1.0)],
            1.0,
            2.0,
            id="one given up raises",
        ),
        pytest.param(
            [("note", 0.5, 0.0), ("note_at_least", 0.2, 10.0)],
            10.0,
            0.2,
            id="one given up raises what has fallen",
        ),
        pytest.param(
            [("note", 5.0, 0.0), ("restart", 0.2, 1.0)], 1.0, 0.2, id="restarts"
        ),
        pytest.param([("note", 1.0, 0.0)], 1e9, 0.0, id="falls to nothing"),
        pytest.param([], 7.0, 0.0, id="is nothing at first"),
    ],
)
def test_estimate(notes, now, expected):
    """Rises at once, falls in time, also while nobody asks."""
    estimate = LatencyEstimate(10.0)
    for how, took, at in notes:
        getattr(estimate, how)(took, at)

    assert pytest.approx(expected) == estimate.at(now)
    assert bool(notes) is estimate.is_known
