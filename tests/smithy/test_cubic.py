"""The CUBIC formulas against the tables of the SDKs."""

import json
from pathlib import Path

import pytest

from aioretry_smithy.smithy.cubic import (
    rate_after_success,
    rate_after_throttling,
    zero_point,
)

VECTORS = json.loads(
    (Path(__file__).parents[1] / "vectors" / "rate_limiter.json").read_text()
)


@pytest.mark.parametrize("row", VECTORS["cubic_success"]["rates"])
def test_rate_rises_after_the_published_table(row):
    """Quickly, then slowly around the rate that was too much, then quickly."""
    table = VECTORS["cubic_success"]
    actual = rate_after_success(row["at"] - table["throttled_at"], table["max_rate"])

    assert pytest.approx(row["rate"], rel=1e-11) == actual


def test_throttling_in_between_starts_from_the_reduced_rate():
    """The rate that was too much is the one that was calculated last."""
    table = VECTORS["cubic_with_throttling"]
    max_rate, throttled_at, rate = table["max_rate"], table["throttled_at"], None
    expected, actual = [], []
    for step in table["steps"]:
        if step["throttled"]:
            max_rate, throttled_at = rate, step["at"]
            rate = rate_after_throttling(rate)
        else:
            rate = rate_after_success(step["at"] - throttled_at, max_rate)
        expected += [step["rate"], step["max_rate"], step["zero_point"]]
        actual += [rate, max_rate, zero_point(max_rate)]

    assert pytest.approx(expected, rel=1e-11) == actual


@pytest.mark.parametrize("row", VECTORS["cubic_parameters"])
def test_parameters_are_those_of_botocore(row):
    """The zero point and the reduced rate follow from the rate alone."""
    rate, beta = row["max_rate"], {key: row[key] for key in {"beta"} & {*row}}
    expected = row["zero_point"], row["reduced"], row["reduced"]

    assert pytest.approx(expected) == (
        zero_point(rate, **beta),
        rate_after_throttling(rate, **beta),
        rate_after_success(0.0, rate, **beta),
    )


@pytest.mark.parametrize("rate", [0.0, 0.1, 7.0, 1e6])
def test_success_begins_where_throttling_has_left_the_rate(rate):
    """There is no step: both formulas meet at the time of the throttling."""
    expected = rate_after_throttling(rate)

    assert pytest.approx(expected) == rate_after_success(0.0, rate)


@pytest.mark.parametrize("row", VECTORS["cubic_fractions_of_the_zero_point"]["rates"])
def test_rate_is_back_at_the_zero_point(row):
    """The zero point is the time at which the rate is what was too much."""
    max_rate = VECTORS["cubic_fractions_of_the_zero_point"]["max_rate"]
    elapsed = row["fraction"] * zero_point(max_rate)

    assert pytest.approx(row["rate"], rel=1e-5) == rate_after_success(elapsed, max_rate)
