"""How the rate is measured."""

import json
from pathlib import Path

import pytest

from aioretry_smithy.smithy.rate_meter import RateMeter

VECTORS = json.loads(
    (Path(__file__).parents[1] / "vectors" / "rate_limiter.json").read_text()
)


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
    """What was counted before is forgotten; the rate stays until there is a new one."""
    meter = RateMeter(now=1000.0)
    meter.record(1001.0)
    meter.record(1001.0)
    meter.begin(5.25)
    meter.record(5.3)
    assert 0.8 == meter.rate

    meter.record(6.0)

    assert pytest.approx(0.8 * 2 + 0.2 * 0.8) == meter.rate
