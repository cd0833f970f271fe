"""Estimates of how long endpoints take.

Of the cases of endpoints.md (f): 50, 51, 97.
"""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioretry_smithy._endpoints.state import (
    Scale,
    begin_anew,
    note_answer,
    note_at_least,
    note_refusal,
    seconds_of,
)


class State:
    """What an estimate is kept in."""

    heat = grown = penalty = 0.0


class Estimate:
    """The estimate of one endpoint, by a clock that is told."""

    def __init__(self, decay=10.0, penalty=1.0):
        self.scale = Scale(decay, penalty)
        self.state = State()
        self.scale.states = [self.state]

    def note(self, now, took, how=note_answer):
        how(self.state, took, self.scale.growth(now))

    def at(self, now):
        return seconds_of(self.state, self.scale.growth(now))


def test_rises_at_once():
    """Case 49: a longer time counts in full."""
    estimate = Estimate()
    estimate.note(0.0, 0.1)
    estimate.note(0.1, 0.5)

    assert 0.5 == pytest.approx(estimate.at(0.1))


def test_falls_by_the_age_of_what_was_before():
    """Case 50: after one decay a shorter time counts for 63 %."""
    estimate = Estimate()
    estimate.note(0.0, 1.0)
    estimate.note(10.0, 0.1)

    assert 1 / math.e + 0.1 * (1 - 1 / math.e) == pytest.approx(estimate.at(10.0))


def test_falls_while_nobody_asks():
    """Case 50: by the factor e in each decay."""
    estimate = Estimate(decay=5.0)
    estimate.note(0.0, 1.0)

    assert [1.0, 1 / math.e, math.exp(-2)] == [
        pytest.approx(estimate.at(now)) for now in (0.0, 5.0, 10.0)
    ]


def test_answer_that_the_request_was_wrong_never_lowers_it():
    """A replica that answers 404 in no time draws no traffic; it is as it was."""
    estimate = Estimate()
    estimate.note(0.0, 1.0)
    estimate.note(7.0, 0.001, note_refusal)

    assert 1.0 == pytest.approx(estimate.at(7.0))


def test_answer_that_the_request_was_wrong_may_raise_it():
    """A slow refusal is slow; the first one is all that is known."""
    first, later = Estimate(), Estimate()
    first.note(0.0, 0.3, note_refusal)
    later.note(0.0, 0.1)
    later.note(1.0, 0.5, note_refusal)

    assert [0.3, 0.5] == [pytest.approx(first.at(0.0)), pytest.approx(later.at(1.0))]


def test_one_given_up_may_only_raise():
    """Case 97: a loser's time so far."""
    estimate = Estimate()
    estimate.note(0.0, 0.5)
    estimate.note(0.0, 0.1, note_at_least)
    lower, grown = estimate.at(0.0), estimate.state.grown
    estimate.note(1.0, 2.0, note_at_least)

    assert [0.5, 1.0, 2.0] == [
        pytest.approx(lower),
        grown,
        pytest.approx(estimate.at(1.0)),
    ]
    assert estimate.scale.growth(1.0) == estimate.state.grown


def test_one_given_up_is_compared_with_what_is_left_of_the_estimate():
    """Case 97: that has fallen to 0.18 s by then."""
    estimate = Estimate()
    estimate.note(0.0, 0.5)
    estimate.note(10.0, 0.2, note_at_least)

    assert pytest.approx(0.2) == estimate.at(10.0)


def test_answer_that_the_request_was_wrong_renews_what_was():
    """Whenever that was."""
    estimate = Estimate()
    estimate.note(0.0, 0.1)
    estimate.note(3.0, 1.0)
    estimate.note(7.0, 0.001, note_refusal)

    assert pytest.approx(1.0) == estimate.at(7.0)


def test_age_of_an_estimate_is_kept_over_epochs():
    """A new one begins after 2000 s, between these two answers."""
    estimate = Estimate()
    estimate.note(0.0, 1.0)
    estimate.note(1999.0, 1.0)
    estimate.note(2001.0, 0.1)

    weight = math.exp(-0.2)
    assert pytest.approx(weight + 0.1 * (1 - weight)) == estimate.at(2001.0)


def test_one_that_comes_back_begins_anew():
    """With the latency of its trial, and no penalty."""
    estimate = Estimate()
    estimate.note(0.0, 5.0)
    estimate.state.penalty = 1.0
    estimate.note(1.0, 0.2, begin_anew)

    assert (0.2, 0.0) == (pytest.approx(estimate.at(1.0)), estimate.state.penalty)


def test_failure_counts_at_least_as_its_penalty():
    """Case 51: the estimate where that is longer."""
    estimate = Estimate()
    estimate.note(0.0, 3.0)
    estimate.state.penalty = 1.0

    assert [3.0, 1.0] == [pytest.approx(estimate.at(0.0)), estimate.at(100.0)]


@given(
    start=st.floats(0.0, 1e9),
    pauses=st.lists(st.floats(0.0, 5000.0), min_size=1, max_size=20),
)
def test_epochs_change_no_estimate(start, pauses):
    """However long a loop runs, growth stays finite and estimates are as ever."""
    estimate, other = Estimate(), State()
    expected, now = 0.0, start
    other.heat = estimate.scale.growth(start)
    estimate.scale.states = [estimate.state, other]
    for pause in pauses:
        now += pause
        weight = math.exp(-pause / 10.0) if expected else 0.0
        expected = max(0.2, expected * weight + 0.2 * (1 - weight))
        estimate.note(now, 0.2)
        growth = estimate.scale.growth(now)

        assert 1.0 <= growth < math.exp(200.0)
        assert pytest.approx(expected) == estimate.at(now)
    age = now - start
    left = math.exp(-age / 10.0)
    assert pytest.approx(left, abs=1e-12) == seconds_of(
        other, estimate.scale.growth(now)
    )
