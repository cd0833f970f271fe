"""What the parts of the standard chain are for: without one, a goal is missed."""

from __future__ import annotations

import pytest
from one_server import SEEDS, Away, Client, Run, failing, run
from policies import changed, standard


def restart(client: Client, seed: int = 1, *, rate: float = 20.0) -> Run:
    """Have the server refuse connections for three seconds."""
    return run(seed, client, Away("refused", [(2.0, 5.0)]), rate=rate, seconds=6.0)


def by_chance(client: Client) -> Run:
    return run(1, client, failing(1, 0.3, 503), rate=20, seconds=50)


@pytest.mark.parametrize("scene", [restart, by_chance])
def test_parts_are_those_of_the_standard_chain(scene):
    """Built by hand they do the same, request by request."""
    assert scene(standard()) == scene(changed())


def test_without_waiting_a_restart_costs_calls():
    """The circuit that opens refuses what would have been answered later."""
    assert 0 == restart(changed()).lost
    assert 30 < restart(changed(wait_for_ready=None)).lost


def test_at_the_full_price_failures_by_chance_use_the_budget_up():
    """A retry for ten successes is far from three in ten."""
    assert 0.995 <= by_chance(changed()).success
    assert by_chance(changed(unserved_cost=1.0)).success < 0.9


def test_without_a_row_that_opens_the_circuit_calls_give_up():
    """By a share of failures alone it opens too late, and nothing waits."""
    by_share = changed(consecutive_failures=None, failure_rate_threshold=0.5)

    assert 5 < restart(by_share).lost


@pytest.mark.long
def test_windows_that_double_outlast_the_patience():
    """The next trial comes when those that waited from the start have given up."""
    doubling = changed(multiplier=2.0)

    assert 0 == sum(restart(changed(), seed, rate=200).lost for seed in SEEDS)
    assert 100 < sum(restart(doubling, seed, rate=200).lost for seed in SEEDS)
