"""Which calls are counted together."""

from __future__ import annotations

import pytest
from made_lines import call, sent

from aioretry_smithy._report.plain_calls import plain_call

LATE = {"response_timeout": 0.11}
QUEUED = {"connection": {"queued": 0.05}}


@pytest.mark.parametrize(
    "values",
    [
        call(sent()),
        call(),
        call(sent(), children=None),
        call(sent(response_timeout=2.0)),
        call(sent(endpoint="10.0.0.1:80")),
        call(sent(), total_duration=3.0),
    ],
)
def test_most_calls_are_plain(values):
    """One request was made, and answered."""
    assert plain_call(values, "path").values is values


@pytest.mark.parametrize(
    "values",
    [
        call(sent(), sent()),
        call(sent(), took=None),
        call(sent(took=None)),
        call(sent(took=0.05)),
        call(sent(), is_success=False),
        call(sent(), is_success=None),
        call(sent(is_success=False)),
        call(sent(), delay=0.05),
        call(sent(delay=0.05)),
        call(sent(is_hedge=True)),
        call(sent(superseded=True)),
        call(sent(calls=[call()])),
        call(calls=[call()]),
        call(sent(**LATE)),
        call(**LATE),
        call(sent(response_timeout=2.0, total_duration=1.9)),
        call(sent(**QUEUED)),
        call(**QUEUED),
        call(request_url=None),
        call(sent(request_url=None)),
        call(children=[1]),
        call(children={"a": 1}),
    ],
)
def test_calls_with_anything_to_them_are_not(values):
    """They are counted each for itself."""
    assert plain_call(values, "path") is None


def test_functions_are_not():
    """By their names, too: what they call is looked at."""
    assert plain_call(call(sent(request_url=None)), "name") is None


def test_key_tells_apart_what_is_counted_apart():
    """Group, host and endpoint; limits that nothing came near to are all the same."""
    calls = [
        call(sent()),
        call(sent(), request_url="http://a.example/stock"),
        call(sent(sent_url="http://b.example/orders/1")),
        call(sent(endpoint="10.0.0.1:80")),
        call(sent(response_timeout=2.0)),
        call(sent(response_timeout="never")),
    ]
    keys = {plain_call(values, "path").key for values in calls}

    assert 4 == len(keys)


def test_paths_of_one_kind_have_one_key():
    """So have calls that have no attempts."""
    first = call(sent(), request_url="https://shop.example.com/orders/1")
    calls = [first, call(), call(sent(took=0.2), took=0.2)]

    assert 1 == len({plain_call(values, "path").key for values in calls})
