"""Calls as trace events, which lie on lanes."""

from __future__ import annotations

import io
import json
import random
from datetime import UTC, datetime, timedelta

import pytest
from calls import (
    attempted,
    begin,
    begin_body,
    end_body,
    end_call,
    note_delay,
)
from foreign_lines import LINES
from hypothesis import given
from hypothesis import strategies as st

from aioretry_smithy._log.trace_events import TraceWriter

SECRET = "S3CR3T"
START = datetime(2026, 11, 26, 12, tzinfo=UTC)
FIRST = 1795694400000000
"""The same in microseconds."""


def line(start=0.0, duration=1.0, **values):
    """Make a line of a call or an attempt that began so many seconds after noon."""
    return {
        "request_method": "GET",
        "request_url": "http://example.com/a",
        "request_started_at": (START + timedelta(seconds=start)).isoformat(),
        "duration": duration,
        "total_duration": duration,
        **values,
    }


def written(*calls):
    """Return the events of calls, and how many calls were skipped."""
    file = io.StringIO()
    with TraceWriter(file) as trace:
        for call in calls:
            trace.add(call)
    assert file.getvalue().isascii()
    values = json.loads(file.getvalue(), parse_constant=pytest.fail)
    assert "ms" == values["displayTimeUnit"]
    return values["traceEvents"], trace.skipped


def slices(*calls):
    """Return the slices, after a look at Perfetto's rules."""
    events, _ = written(*calls)
    found = [event for event in events if event["ph"] == "X"]
    check_lanes(found)
    assert {event["tid"] for event in found} <= {*lanes(events)}
    return found


def lanes(events):
    """Return the names of the lanes, by number."""
    return {
        event["tid"]: event["args"]["name"]
        for event in events
        if event["name"] == "thread_name"
    }


def check_lanes(events):
    """On one lane, slices are apart or nested; Perfetto drops others.

    It sorts by beginning, and leaves those that begin together in their order.
    """
    opened = {}
    for event in sorted(events, key=lambda event: event["ts"]):
        assert {"name", "cat", "ph", "ts", "dur", "pid", "tid", "args"} == {*event}
        start, end = event["ts"], event["ts"] + event["dur"]
        assert 0 <= start <= end < (1 << 63) // 1000
        around = opened.setdefault(event["tid"], [])
        while around and around[-1] <= start:
            around.pop()
        assert not around or end <= around[-1], event
        around.append(end)


def seen(events):
    """Return lane, name, start and end, in seconds after noon, sorted."""
    return sorted(
        (
            event["tid"],
            (event["ts"] - FIRST) / 1e6,
            (event["ts"] + event["dur"] - FIRST) / 1e6,
            event["name"],
        )
        for event in events
    )


def test_call_with_attempts_and_waits():
    """A wait lies between two attempts, and all of them within the call."""
    attempts = [
        line(
            0.0, 0.5, attempt=1, response_status=503, delay=1.5, delay_source="backoff"
        ),
        line(2.0, 1.0, attempt=2, response_status=200, response_reason="OK"),
    ]

    assert [
        (1, 0.0, 0.5, "attempt 1: 503"),
        (1, 0.0, 3.0, "GET example.com/a"),
        (1, 0.5, 2.0, "wait: backoff"),
        (1, 2.0, 3.0, "attempt 2: 200 OK"),
    ] == seen(slices(line(0.0, 3.0, children=attempts)))


def test_calls_one_after_the_other_share_a_lane():
    """One that overlaps another has a lane of its own, the first that is free."""
    calls = [line(0, 2), line(1, 2), line(2, 1), line(2.5, 1), line(2.5, 1)]

    assert [1, 2, 1, 3, 4] == [
        lane
        for start in (0, 1, 2, 2.5)
        for lane, begun, _, _ in seen(slices(*calls))
        if begun == start
    ]


def test_order_of_lines_does_not_matter():
    """A call is written when it ends, and files may be given in any order."""
    calls = [line(start, 1 + start % 3, id=f"a-{start}") for start in range(20)]
    shuffled = random.Random(1).sample(calls, len(calls))

    assert written(*calls) == written(*shuffled)


def test_hedge_lies_beside_its_call():
    """Its wait is one of the call, between its attempts."""
    attempts = [
        line(0.0, 1.0, attempt=1, superseded=True),
        line(0.25, 0.5, attempt=2, is_hedge=True, response_status=500, delay=2.0),
        line(3.0, 1.0, attempt=3, response_status=200),
    ]
    events = slices(line(0.0, 4.0, children=attempts))

    assert [
        (1, 0.0, 1.0, "attempt 1: superseded"),
        (1, 0.0, 4.0, "GET example.com/a"),
        (1, 1.0, 3.0, "wait: unknown"),
        (1, 3.0, 4.0, "attempt 3: 200"),
        (2, 0.25, 0.75, "hedge 2: 500"),
    ] == seen(events)


def test_lanes_are_named():
    """Those beside a lane stand below it."""
    hedge = line(0.25, 0.5, is_hedge=True)
    events, _ = written(line(children=[line(), hedge]), line(0.5))

    assert {1: "calls 1", 2: "calls 1, beside 1", 3: "calls 2"} == lanes(events)
    assert [1, 2, 3] == [
        event["args"]["sort_index"]
        for event in events
        if event["name"] == "thread_sort_index"
    ]


def test_hedge_that_overlaps_another_hedge():
    """Each has a lane then."""
    hedges = [line(start, 1.0, is_hedge=True) for start in (0.1, 0.2, 1.1)]
    events = slices(line(0, 3, children=[line(0, 3), *hedges]))

    assert [2, 2, 3] == sorted(
        event["tid"] for event in events if event["cat"] == "hedge"
    )


def test_call_inside_is_nested():
    """Those one after the other lie in the attempt, what overlaps lies beside."""
    calls = [line(0.0, 1.0), line(1.0, 1.0), line(1.5, 0.25)]
    attempt = line(0.0, 3.0, request_method=None, request_url=None, calls=calls)
    call = {**attempt, "name": "fetch", "calls": [], "children": [attempt]}

    assert [
        (1, 0.0, 1.0, "GET example.com/a"),
        (1, 0.0, 3.0, "attempt 1: returned"),
        (1, 0.0, 3.0, "fetch"),
        (1, 1.0, 2.0, "GET example.com/a"),
        (2, 1.5, 1.75, "GET example.com/a"),
    ] == seen(slices(call))


def test_body_that_a_call_inside_covers():
    """It would overlap on its lane, and is not drawn."""
    inner = line(0.5, 1.0, request_url="http://example.com/token")
    call = line(0.0, 1.0, total_duration=1.5, calls=[inner])

    assert [
        (1, 0.0, 1.5, "GET example.com/a"),
        (1, 0.5, 1.5, "GET example.com/token"),
    ] == seen(slices(call))


def test_call_inside_that_outlives_its_attempt():
    """Its body may be read later; it lies beside, with all that is inside."""
    inner = line(0.5, 2.0, children=[line(0.5, 2.0)])
    call = line(0.0, 1.0, request_method=None, request_url=None, calls=[inner])

    assert [1, 2, 2] == sorted(event["tid"] for event in slices(call))


def test_attempts_that_overlap():
    """One that is no hedge lies beside only if it has to."""
    attempts = [line(0.0, 1.0), line(0.5, 1.0), line(1.25, 0.25)]
    events = slices(line(0.0, 1.5, children=attempts))

    assert [(1, 0.0), (1, 0.0), (1, 1.25), (2, 0.5)] == [
        (lane, start) for lane, start, _, _ in seen(events)
    ]


def test_times_that_were_rounded():
    """Microseconds make no lanes."""
    attempts = [line(0.0, 0.500002), line(0.5, 0.500003)]
    events = slices(line(0.0, 1.0, children=attempts), line(1.000003))

    assert {1} == {event["tid"] for event in events}


def test_parts_of_an_attempt():
    """The wait for a connection is at the beginning, the body at the end."""
    connection = {"queued": 0.25, "dns": None, "connect": 0.125, "reused": False}
    call = line(0.0, 0.5, total_duration=1.0, connection=connection)

    assert [
        (1, 0.0, 0.25, "queued"),
        (1, 0.0, 1.0, "GET example.com/a"),
        (1, 0.25, 0.375, "connect"),
        (1, 0.5, 1.0, "body"),
    ] == seen(slices(call))


@pytest.mark.parametrize("has_attempts", [True, False])
def test_wait_before_the_first_attempt(has_attempts):
    """It is a part of the call, whether that has attempts or not."""
    children = [line(0.75, 0.25)] if has_attempts else []
    call = line(0.0, 1.0, delay=0.75, delay_source="rate_limit", children=children)

    assert (0.0, 0.75, "wait: rate_limit") in [
        (start, end, name) for _, start, end, name in seen(slices(call))
    ]


@pytest.mark.parametrize(
    ("duration", "waits"), [(2.0, [(1.0, 2.0)]), (None, [(1.0, 6.0)]), (1.0, [])]
)
def test_wait_after_the_last_attempt(duration, waits):
    """It ended with the call, or goes on."""
    child = line(0.0, 1.0, delay=5.0, delay_source="backoff")
    events = slices(line(0.0, duration, children=[child]))

    assert waits == [
        (start, end) for _, start, end, name in seen(events) if name.startswith("wait")
    ]


def test_wait_of_an_attempt_alone_is_not_in_it():
    """The line of an attempt has the wait after it, and nobody knows when that was."""
    assert 1 == len(slices(line(attempt=1, delay=0.5)))


def test_call_under_way_is_as_long_as_what_is_inside():
    """Its own end is not known yet."""
    inner = line(0.5, 2.0)
    attempt = line(0.0, None, request_method=None, request_url=None, calls=[inner])
    events = slices({**attempt, "calls": [], "children": [attempt]})

    assert [2.5, 2.5, 2.5] == sorted(end for _, _, end, _ in seen(events))
    assert "attempt 1: no response yet" in {event["name"] for event in events}


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({}, "GET example.com/a"),
        ({"request_url": "https://u:p@h:1/a?b#c"}, "GET h:1/a"),
        ({"request_url": "/a?b=//c@d"}, "GET /a"),
        ({"request_method": None, "request_url": None, "name": "fetch"}, "fetch"),
        ({"request_method": 1, "request_url": []}, "call"),
    ],
)
def test_name_of_a_call(values, name):
    """It is short, so that equal calls can be gathered by their names."""
    assert name == slices(line(**values))[0]["name"]


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({"response_status": 404, "response_reason": "Not Found"}, "404 Not Found"),
        ({"response_cause": "ValueError: a: b"}, "ValueError"),
        ({"response_cause": "x", "response_cause_type": "TypeError"}, "TypeError"),
        ({}, "returned"),
        ({"duration": None}, "no response yet"),
        ({"superseded": True}, "superseded"),
    ],
)
def test_name_of_an_attempt(values, name):
    """It says how the attempt ended."""
    child = {**line(attempt=7), **values}
    names = {event["name"] for event in slices(line(children=[child]))}

    assert f"attempt 7: {name}" in names


def test_facts_are_arguments():
    """What is known, named as in the log."""
    call = line(
        id="a-1",
        response_status=503,
        is_success=False,
        stop_reason="deadline",
        response_timeout=2.5,
        response_cause=None,
    )

    assert {
        "id": "a-1",
        "request_url": "http://example.com/a",
        "response_status": 503,
        "is_success": False,
        "stop_reason": "deadline",
        "response_timeout": 2.5,
    } == slices(call)[0]["args"]


def test_secrets_are_masked():
    """In names and in arguments, whoever wrote the line."""
    url = f"http://user:{SECRET}@example.com/?token={SECRET}"
    call = line(request_url=url, response_cause=f"ValueError: {url}", retry_error=url)

    assert SECRET not in json.dumps(slices({**call, "children": [call]}))


def test_trace_of_no_calls():
    """It is valid, too."""
    assert (["process_name"], 0) == (
        [event["name"] for event in written()[0]],
        written()[1],
    )


@pytest.mark.parametrize("start", ["noon", None, "1969-12-31", "2250-01-01", 5])
def test_call_that_began_nobody_knows_when_is_skipped(start):
    """It is counted."""
    assert 1 == written(line(request_started_at=start))[1]


def test_start_of_the_attempts_is_enough():
    """Attempts without one are left out."""
    children = [line(request_started_at=None), line(1.0), line(0.5, 0.25)]
    call = line(request_started_at=None, children=children)
    events = slices(call)

    assert (3, 0.5) == (len(events), seen(events)[0][1])


def test_call_that_is_too_deep_is_skipped():
    """The others are written."""
    deep = line()
    for _ in range(5000):
        deep = line(children=[line(calls=[deep])])
    events, skipped = written(deep, line())

    assert (1, 1) == (sum(event["ph"] == "X" for event in events), skipped)


def test_many_events_go_to_a_temporary_file():
    """So that memory does not grow with what is in the calls."""
    calls = [line(start, id="a" * 2000) for start in range(1000)]

    assert 1000 == len(slices(*calls))


def test_error_in_the_block_leaves_the_file_as_it_is():
    """Nothing is written before the end, and the temporary file is closed."""
    file = io.StringIO()
    with pytest.raises(AttributeError), TraceWriter(file) as trace:
        trace.add(None)

    assert "" == file.getvalue()


async def test_call_of_a_chain():
    """From a log, with a hedge, waits and a body."""
    ctx = begin()
    note_delay(ctx, 0.25, "rate_limit")
    await attempted(ctx, 0.5, 503, delay=1.0)
    child = ctx.derive(ctx.request)
    begin_body(child)
    end_body(child, 3)
    end_call(ctx, child)
    log = ctx.log

    assert {"call", "attempt", "wait"} == {
        event["cat"] for event in slices(log.to_dict())
    }


TIMES = st.sampled_from([0.0, 1e-6, 3e-6, 0.5, 1.0, 1.5, 2.0]) | st.floats(0, 3)
DELAYS = st.none() | TIMES
CONNECTIONS = st.none() | st.fixed_dictionaries(
    {}, optional={"queued": TIMES, "dns": TIMES, "connect": TIMES}
)


def nodes(**inside):
    """Make calls or attempts, however they may lie to each other."""
    return st.builds(
        line,
        TIMES,
        DELAYS,
        total_duration=DELAYS,
        delay=DELAYS,
        connection=CONNECTIONS,
        is_hedge=st.booleans(),
        superseded=st.booleans(),
        **inside,
    )


CALLS = st.recursive(
    nodes(),
    lambda calls: nodes(
        children=st.lists(nodes(calls=st.lists(calls, max_size=4)), max_size=5),
        calls=st.lists(calls, max_size=3),
    ),
    max_leaves=12,
)


@pytest.mark.slow
@given(st.lists(CALLS, max_size=8))
def test_no_slices_overlap(calls):
    """Whatever overlaps: calls, attempts, hedges, waits, calls inside."""
    events = slices(*calls)

    assert count(calls) == sum(
        event["cat"] in {"call", "hedge", "attempt"} for event in events
    )


@pytest.mark.slow
@given(LINES, st.lists(CALLS, max_size=2))
def test_any_values_make_a_valid_trace(values, calls):
    """Whatever stands in the fields of a line."""
    slices(values, *calls, {**values, "request_started_at": START.isoformat()})


def count(calls):
    """Return how many calls and attempts there are."""
    number = 0
    while calls:
        number += len(calls)
        calls = [
            inside
            for call in calls
            for inside in (*call.get("children", ()), *call.get("calls", ()))
        ]
    return number
