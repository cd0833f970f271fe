"""Quantiles from buckets."""

from __future__ import annotations

import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioretry_smithy._report.fields import Histogram, bucket_of, value_of


def histogram_of(values):
    histogram = Histogram()
    for value in values:
        histogram.add(bucket_of(value), value, 1.0)
    return histogram


def exact(values, part):
    return sorted(values)[max(0, math.ceil(part * len(values)) - 1)]


@given(
    st.lists(st.floats(1e-6, 1e6), min_size=1),
    st.sampled_from([0.01, 0.5, 0.95, 0.99, 1.0]),
)
def test_quantiles_are_near_the_exact_ones(values, part):
    """Whatever the numbers, the error is at most 1 %."""
    assert exact(values, part) == pytest.approx(
        histogram_of(values).quantile(part), rel=0.01
    )


def test_nothing_has_no_quantiles():
    """Nobody knows them without a number."""
    histogram = Histogram()

    assert (None, None, None) == (
        histogram.quantile(0.5),
        histogram.bucket_at(0.5),
        histogram.largest,
    )


def test_zeros():
    """A call that took no time has a bucket of its own."""
    histogram = histogram_of([0.0, 0.0, 1.0])

    assert 0.0 == histogram.quantile(0.5)
    assert 1.0 == histogram.quantile(0.99)
    assert 0.0 == value_of(bucket_of(0.0))


def test_no_quantile_is_above_the_largest_number():
    """The middle of its bucket may be."""
    assert 1.0 == histogram_of([1.0]).quantile(0.5)


def test_weights():
    """A number counts as often as its weight says."""
    histogram = Histogram()
    histogram.add(bucket_of(1.0), 1.0, 9.0)
    histogram.add(bucket_of(2.0), 2.0, 1.0)

    assert 1.0 == pytest.approx(histogram.quantile(0.9), rel=0.01)
    assert 2.0 == pytest.approx(histogram.quantile(0.95), rel=0.01)


def test_merged_histograms_are_that_of_all_numbers():
    """It makes no difference who counted what."""
    chance = Random(0)
    values = [chance.expovariate(1.0) for _ in range(200)]
    merged, other = histogram_of(values[:50]), histogram_of(values[50:])
    merged += other
    merged += Histogram()

    whole = histogram_of(values)
    assert (whole.buckets, whole.largest) == (merged.buckets, merged.largest)
