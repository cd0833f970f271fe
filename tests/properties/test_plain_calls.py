"""Calls that are counted together are counted as each for itself would be."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_lines import call, failed, sent

from aioretry_smithy._report import decoding
from aioretry_smithy._report.decoding import decode
from aioretry_smithy._report.reading import Reading
from aioretry_smithy._report.selection import Selection

EACH_FOR_ITSELF = Selection(matches=(("url", "*"),))
"""Whatever has to match a pattern is looked at."""

TIMES = st.sampled_from([0.1, 0.1, 0.1004, 1.7])
ODD_TIMES = st.sampled_from([None, 0.0, 1e-6, "soon", -1])
ODD = {
    "request_url": st.sampled_from(["http://b.example/o?n=1", None, 7]),
    "sent_url": st.just("http://c.example/"),
    "endpoint": st.sampled_from(["10.0.0.1:80", ["none"]]),
    "delay": st.just(0.05),
    "delay_source": st.just("stale_connection"),
    "response_timeout": st.sampled_from([0, 0.11, 2.0, "never"]),
    "connection": st.just({"queued": 0.05, "reused": False}),
    "superseded": st.just(True),
    "is_hedge": st.just(True),
    "is_success": st.sampled_from([True, False, None]),
    "duration": ODD_TIMES,
    "total_duration": ODD_TIMES | st.just(1.9),
    "calls": st.just([call(id=None)]),
    "children": st.sampled_from([[1], {"a": 1}]),
    "sampling_rate": st.just(0.5),
}
"""What makes a call another one than most."""

EXTRAS = st.fixed_dictionaries({}) | st.sampled_from([*ODD]).flatmap(
    lambda key: st.fixed_dictionaries({key: ODD[key]})
)
ATTEMPTS = st.builds(
    lambda took, status, extras: sent(0.0, took, status, **extras),
    TIMES,
    st.sampled_from([200, 200, 200, 503]),
    EXTRAS,
)
LOST = st.builds(lambda took: sent(0.0, took, **failed("TimeoutError")), TIMES)
CALLS = st.builds(
    lambda children, at, took, extras: call(
        *children, at=at, took=took, **{"sampling_rate": 0.01} | extras
    ),
    st.lists(ATTEMPTS, max_size=1) | st.lists(ATTEMPTS | LOST, max_size=2),
    st.floats(0, 600),
    TIMES,
    EXTRAS,
)
"""Each stands for a hundred, which is enough for hints."""


def counted(calls, by, selection):
    """Return the answers about calls, without the numbers of those not counted."""
    reading = Reading(by, 3, selection)
    for values in calls:
        reading.add(values)
    return json.loads(json.dumps(reading.answers().to_dict()))


def near(value):
    """Return a value to compare with: sums of floats depend on their order."""
    if isinstance(value, dict):
        return {key: near(each) for key, each in value.items()}
    if isinstance(value, list):
        return [near(each) for each in value]
    return pytest.approx(value, abs=1e-9) if isinstance(value, float) else value


@given(
    st.lists(CALLS, max_size=12),
    st.sampled_from(["path", "host", "method", "endpoint", "name"]),
)
def test_plain_calls_are_counted_as_any_others(calls, by):
    """One pattern that matches all makes no difference."""
    expected = counted(calls, by, EACH_FOR_ITSELF)

    assert near(expected) == counted(calls, by, Selection())


WHOLE = st.integers(-(2**63), 2**64 - 1)
LEAVES = st.none() | st.booleans() | WHOLE | st.floats() | st.text()
VALUES = st.recursive(
    LEAVES, lambda inside: st.lists(inside) | st.dictionaries(st.text(), inside)
)


@given(st.dictionaries(st.text(), VALUES), st.booleans())
def test_lines_are_read_alike_with_and_without_the_extra(values, is_ascii):
    """What is not JSON in the eyes of one reader is read by the other."""
    pytest.importorskip("orjson", reason="needs the extra cli")
    line = json.dumps({**values, "type": "call", "name": "f"}, ensure_ascii=is_ascii)
    encoded = line.encode("utf-8", "surrogatepass")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decoding, "_READ_WHOLE_LINE", None)
        expected = decode(encoded)

    assert expected == decode(encoded)
