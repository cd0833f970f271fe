"""Those that wait for a reset are scattered behind it."""

from __future__ import annotations

import random

from aioretry_smithy._limits.rate_rules import Scatter


def turns_after(*resets):
    """Return when three that are patient go out, one after the other."""
    scatter = Scatter()
    for at in resets:
        scatter.begin(at, 5.0)
    random.seed(7)
    turns = []
    for waiting in (3, 2, 1):
        turns.append(scatter.next_turn(10.0, waiting, 60.0))
        scatter.let_go()
    return turns


def test_an_earlier_reset_begins_no_window():
    """The answers of two requests may come in another order than they were sent."""
    assert turns_after(10.0) == turns_after(10.0, 9.0)
