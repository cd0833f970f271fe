"""What each part of a balanced chain is for: without it, a goal is missed."""

from __future__ import annotations

from functools import partial

import pytest
from replica_model import BEGIN, LENGTH, refuses, retrying_chain, run, unavailable

from aioretry_smithy import EndpointSelectionStrategy, RetryBudget
from aioretry_smithy._endpoints import ejection, roster
from aioretry_smithy._endpoints.roster import Roster

pytestmark = [
    pytest.mark.long,
    pytest.mark.release,
    pytest.mark.xdist_group("ablations"),
]
SEED = 1
END = BEGIN + LENGTH
OFF = {"outlier_detection": None}
DEAD = {"refuses": refuses, "answers 503": unavailable}

dead = pytest.mark.parametrize("trouble", DEAD.values(), ids=DEAD)


@dead
def test_penalty_keeps_requests_from_one_that_fails_quickly(trouble):
    """Without it, the quick failure draws them, and the budget is used up."""
    without = EndpointSelectionStrategy.peak_ewma(failure_penalty=0.0)
    done = run(SEED, {0: trouble}, **OFF)
    missed = run(SEED, {0: trouble}, selection=without, **OFF)

    assert 1.0 == done.success(BEGIN, END)
    assert done.share(0) <= 0.01
    assert missed.success(BEGIN, END) <= 0.5
    assert missed.share(0) > 0.5


@dead
def test_ejection_takes_the_place_of_the_penalty(trouble):
    """With it, callers notice hardly anything even so."""
    without = EndpointSelectionStrategy.peak_ewma(failure_penalty=0.0)

    assert run(SEED, {0: trouble}, selection=without).success(BEGIN, END) >= 0.999


def everywhere(call, record, well):
    """Stand in for what leaves out the endpoints that a call has tried."""
    return well


@dead
def test_retries_that_may_go_to_the_same_one_are_not_enough(trouble, monkeypatch):
    """By turns and without ejection, a third fails first, and retries are few."""
    turns = EndpointSelectionStrategy.round_robin()
    monkeypatch.setattr(roster, "least_tried", everywhere)

    done = run(SEED, {0: trouble}, selection=turns, **OFF)

    assert done.success(BEGIN, END) <= 0.9


def test_retries_elsewhere_are_enough_where_they_cost_nothing(monkeypatch):
    """By turns, three attempts find one that is well, unless they go to the same."""
    plenty = RetryBudget.per_host(deposit=2.0, capacity=1000.0, brake_after=None)
    turns = EndpointSelectionStrategy.round_robin()
    settings = {"selection": turns, **OFF}
    settings["chain"] = partial(retrying_chain, limiter=plenty)

    done = run(SEED, {0: unavailable}, **settings)
    monkeypatch.setattr(roster, "least_tried", everywhere)
    missed = run(SEED, {0: unavailable}, **settings)

    assert 1.0 == done.success(BEGIN, END)
    assert missed.success(BEGIN, END) <= 0.99


@dead
def test_floor_lets_all_serve_at_once_after_they_all_failed(trouble, monkeypatch):
    """Without it all are out, and calls fail after the servers are well again."""
    back = BEGIN + 16
    review = Roster.review

    def none_is_left(group):
        review(group)
        if all(each.ejected_until is not None for each in group.states):
            group.well = ()

    monkeypatch.setattr(Roster, "review", none_is_left)
    monkeypatch.setattr(ejection, "_too_many_out", lambda state, detection: False)

    done = run(SEED, dict.fromkeys(range(3), trouble), length=16.0, end=back + 20)

    assert done.success(back) <= 0.99
