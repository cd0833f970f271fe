"""Turns and medians: the arithmetic behind the tables of the benchmarks."""

from functools import partial

import pytest
from rounds import (
    Estimate,
    differences,
    estimate,
    interleaved,
    order_of,
    ratios,
    ratios_of_least,
)


@pytest.mark.parametrize(
    ("number", "order"), [(0, "ABC"), (1, "BCA"), (2, "CAB"), (3, "ABC")]
)
def test_each_round_begins_one_further_on(number, order):
    """Over as many rounds as there are names, each has been in every place."""
    assert [*order] == order_of("ABC", number)


async def test_all_are_measured_in_turns():
    """Nobody is measured twice before everybody was measured once."""
    measured = []

    async def measure(name):
        measured.append(name)
        return len(measured)

    samples = await interleaved({name: partial(measure, name) for name in "ABC"}, 3)

    assert [*"ABCBCACAB"] == measured
    assert {"A": [1, 6, 8], "B": [2, 4, 9], "C": [3, 5, 7]} == samples


def test_ratios_and_differences_compare_within_a_round():
    """A machine that was twice as slow in the second round changes no ratio."""
    assert [1.5, 1.5] == ratios([3.0, 6.0], [2.0, 4.0])
    assert [1.0, 2.0] == differences([3.0, 6.0], [2.0, 4.0])


def test_least_of_all_rounds_are_compared():
    """Whatever round each of them was found in."""
    assert [1.5] == ratios_of_least([9.0, 3.0], [2.0, 4.0])


def test_values_without_noise_have_no_interval():
    """Where every round says the same, so does the estimate."""
    assert (1.4, 1.4, 1.4) == estimate([1.4] * 15)


def test_one_bad_round_hardly_counts():
    """A single outlier moves neither the median nor the interval to itself."""
    found = estimate([1.38, 1.39, 1.4, 1.41, 1.42] * 3 + [100.0])

    assert 1.4 == pytest.approx(found.median, abs=0.011)
    assert 1.38 <= found.low <= found.median <= found.high <= 1.42


def test_noise_widens_the_interval():
    """The interval says how far the rounds disagree."""
    calm = estimate([1.4 + 0.01 * number for number in range(15)])
    rough = estimate([1.4 + 0.1 * number for number in range(15)])

    assert rough.high - rough.low == pytest.approx(10 * (calm.high - calm.low))


def test_estimate_is_the_same_each_time():
    """Chance is seeded: two readings of one file of results agree."""
    values = [1.0, 1.5, 1.2, 1.9, 1.1]

    assert estimate(values) == estimate(values)


@pytest.mark.parametrize(
    ("limit", "is_reached"), [(1.0, False), (1.1, True), (1.2, True), (1.4, True)]
)
def test_a_bound_is_kept_where_the_interval_reaches_it(limit, is_reached):
    """What lies above it by no more than the noise may not be a miss."""
    assert is_reached == Estimate(1.2, 1.1, 1.3).reaches(limit)
