"""What is taken out of lines, which may have anything, and how it is counted."""

import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_lines import failed, sent

from aioretry_smithy._log.saved_log import dictionaries
from aioretry_smithy._report.fields import (
    CountTable,
    Histogram,
    bucket_of,
    cause_type,
    folded,
    host_of,
    is_refused,
    is_success,
    number,
    outcome_of,
    place_of,
    text,
    value_of,
    where,
)


@pytest.mark.parametrize("value", [0, 0.5, 17])
def test_numbers(value):
    """They are what they are."""
    assert value == number({"x": value}, "x")


@pytest.mark.parametrize("value", [None, "1", True, -1, math.nan, math.inf, 1e300, []])
def test_what_is_no_number(value):
    """It is missing, as no time or count is like that."""
    assert None is number({"x": value}, "x")


@pytest.mark.parametrize("value", [None, "", 1, [], {}])
def test_what_is_no_text(value):
    """It is missing."""
    assert None is text({"x": value}, "x")
    assert "a" == text({"x": "a"}, "x")


@pytest.mark.parametrize("value", [None, "a", {}, [], 1, [1, "a", None]])
def test_what_are_no_dictionaries(value):
    """There are none."""
    assert [] == dictionaries({"x": value}, "x")
    assert [{}] == dictionaries({"x": [1, {}]}, "x")


FOLDED = {
    "/": "/",
    "": "/",
    "/orders": "/orders",
    "/orders/17": "/orders/*",
    "/orders/17/items/3": "/orders/*/items/*",
    "/orders/17?page=2": "/orders/*",
    "/orders/17#end": "/orders/*",
    "/days/2026-11-23": "/days/*",
    "/days/20261123": "/days/*",
    "/at/2026-11-23T12:00:00Z": "/at/*",
    "/reports/2026-11-23.json": "/reports/*.json",
    "/users/0b9d2c1e-0f0e-4c0e-9a53-0d3c4a1f7a11": "/users/*",
    "/users/0B9D2C1E0F0E4C0E9A530D3C4A1F7A11": "/users/*",
    "/commits/deadbeefcafe1234": "/commits/*",
    "/commits/1f2e3d4c": "/commits/*",
    "/keys/01ARZ3NDEKTSV4RRFFQ69G5FAV": "/keys/*",
    "/v2/orders": "/v2/orders",
    "/facade": "/facade",
    "/decade/effaced": "/decade/effaced",
    "/files/report.json": "/files/report.json",
    "/a-word-with-dashes-that-is-quite-long": "/a-word-with-dashes-that-is-quite-long",
}


@pytest.mark.parametrize("path", FOLDED)
def test_ids_are_folded_and_words_are_not(path):
    """What differs from call to call is a star."""
    assert FOLDED[path] == folded(path)


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://api.example.com/a", "api.example.com"),
        ("https://api.example.com:443/a", "api.example.com"),
        ("http://api.example.com:80", "api.example.com"),
        ("http://api.example.com:443/a", "api.example.com:443"),
        ("http://API.example.com:8080/a", "api.example.com:8080"),
        ("https://****@api.example.com/a", "api.example.com"),
        ("http://[::1]:80/a", "[::1]"),
        ("strange://host:1", "host:1"),
        ("/orders/17", ""),
    ],
)
def test_hosts(url, host):
    """The port of the scheme is not shown, and neither are credentials."""
    assert host == place_of(url).host


def test_path_of_a_url_without_a_host():
    """A relative URL has a path all the same."""
    assert "/orders/*" == place_of("/orders/17").path


def test_hostile_paths_are_cut():
    """Nothing in memory is as long as somebody likes."""
    assert 200 >= len(place_of("http://h/" + "x" * 10_000).path)
    assert 200 >= len(place_of("http://" + "x" * 10_000).host)


@pytest.mark.parametrize(
    ("values", "outcome"),
    [
        ({"response_status": 503}, "503"),
        ({"response_status": 404, "response_cause": "ClientResponseError: 404"}, "404"),
        ({"response_status": 200}, "200, retried"),
        ({"response_status": 200, "response_cause": "E: cut"}, "200, E"),
        ({"response_cause_type": "TimeoutError"}, "TimeoutError"),
        ({"response_cause": "TimeoutError"}, "TimeoutError"),
        ({"response_cause": "OSError: a: b"}, "OSError"),
        ({}, "no response"),
    ],
)
def test_outcomes(values, outcome):
    """A status, the class of an exception, or both."""
    assert outcome == outcome_of(values)


def test_names_of_classes_are_cut():
    """A line may have any text there."""
    assert 80 == len(cause_type({"response_cause_type": "E" * 10_000}))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"is_success": False, "response_status": 200}, False),
        ({"is_success": True, "response_status": 503}, True),
        ({"response_status": 200}, True),
        ({"response_status": 404}, False),
        ({}, True),
        ({"response_cause": "E: x"}, False),
        ({"response_status": 200, "stop_reason": "limiter"}, False),
    ],
)
def test_successes(values, expected):
    """Lines say so; older ones leave it to be derived."""
    assert expected is is_success(values)


def test_what_was_retried_was_no_success():
    """Whatever the status of an attempt in an older line."""
    assert not is_success({"response_status": 200}, was_retried=True)


def test_refusals_of_this_side():
    """They are exceptions of our decorators, not those of servers."""
    assert is_refused(failed("FailFastError"))
    assert not is_refused(failed("ClientConnectorError"))
    assert not is_refused(sent(status=503))


def test_places():
    """An endpoint before a host, what was sent before what was asked for."""
    url = {"request_url": "http://a/x?token=1"}

    assert "a" == where(url)
    assert "b" == host_of({**url, "sent_url": "http://b/x"})
    assert "eu:80" == where({**url, "endpoint": "eu:80"})
    assert "load" == where({"name": "load"})
    assert "" == where({})


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


class Number:
    def __init__(self):
        self.weight = 0.0

    def merge(self, other):
        self.weight += other.weight


def test_equal_counts_come_in_the_order_of_their_keys():
    """It is not told which was counted first, nor how floats were rounded."""
    table = CountTable[str, Number](Number)
    table.at("b").weight += 0.3
    table.at("a").weight += 0.1 + 0.2

    assert ["a", "b"] == [key for key, _ in table.largest(2)]
    table.at("a").weight = 0.3 - 1e-15
    assert ["a", "b"] == [key for key, _ in table.largest(2)]
