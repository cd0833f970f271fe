"""How the rate is measured, and the CUBIC formulas against the tables of the SDKs."""

import json
from pathlib import Path

import pytest

from aioretry_smithy.smithy import limiters
from aioretry_smithy.smithy.limiters import (
    RateMeter,
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
def test_parameters_are_those_of_botocore(row, monkeypatch):
    """The zero point and the reduced rate follow from the rate alone."""
    rate = row["max_rate"]
    if "beta" in row:
        monkeypatch.setattr(limiters, "_BETA", row["beta"])
    expected = row["zero_point"], row["reduced"], row["reduced"]

    assert pytest.approx(expected) == (
        zero_point(rate),
        rate_after_throttling(rate),
        rate_after_success(0.0, rate),
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


def by_remark(vector):
    return vector["remark"]


@pytest.mark.parametrize("vector", VECTORS["measured_rate"], ids=by_remark)
def test_rate_is_that_of_the_published_histories(vector):
    """Half seconds are counted, and the newest one weighs most."""
    meter = RateMeter(now=0.0)
    rates = []
    for step in vector["steps"]:
        meter.record(step["at"])
        rates.append(meter.rate)

    assert pytest.approx([step["rate"] for step in vector["steps"]]) == rates


def test_buckets_are_those_of_the_clock():
    """Measuring that begins within a second begins with that second."""
    meter = RateMeter(now=100.75)
    meter.record(101.0)

    assert 0.8 == meter.rate


def test_measuring_begins_anew():
    """Earlier requests are forgotten; the rate stays until there is a new one."""
    meter = RateMeter(now=1000.0)
    meter.record(1001.0)
    meter.record(1001.0)
    meter.begin(5.25)
    meter.record(5.3)
    assert 0.8 == meter.rate

    meter.record(6.0)

    assert pytest.approx(0.8 * 2 + 0.2 * 0.8) == meter.rate
