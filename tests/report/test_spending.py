"""Where the time of a call went."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_lines import call, failed, function, sent

from aioretry_smithy._report.seen_call import SeenCall, spending

LOST = {"superseded": True, "is_success": True}


def spent(values):
    parts = spending(SeenCall(values))
    return {part: round(seconds, 6) for part, seconds in parts.items()}


def again(seconds, source="backoff"):
    return {"delay": seconds, "delay_source": source}


def test_an_answer():
    """All of the time was that of the server."""
    assert {"answer": 0.1} == spent(call(sent()))
    assert {"answer": 0.1} == spent(call())


def test_a_failure():
    """The time of a call without success is that of failed attempts."""
    assert {"failed_attempt": 0.1} == spent(call(sent(status=503), status=503))


def test_waits_and_failed_attempts():
    """Each wait by its source; what nobody accounts for lies between."""
    values = call(
        sent(0, 0.1, 503, **again(0.5)),
        sent(0.6, 0.1, 429, **again(2.0, "retry_after")),
        sent(2.75, 0.25),
        took=3.0,
    )

    assert {
        "failed_attempt": 0.2,
        "wait backoff": 0.5,
        "wait retry_after": 2.0,
        "answer": 0.25,
        "other": 0.05,
    } == spent(values)


@pytest.mark.parametrize("source", ["rate_limit", "circuit_breaker"])
@pytest.mark.parametrize("children", [[], [sent(1.0, 0.5)]])
def test_wait_before_the_first_attempt(children, source):
    """A rate limit or an open circuit lets the call wait."""
    values = call(*children, took=1.5, **again(1.0, source))

    assert {f"wait {source}": 1.0, "answer": 0.5} == spent(values)


def test_unknown_sources_of_waits_are_one():
    """A line may have any text there."""
    values = call(sent(0, 0.1, 503, **again(0.5, "x" * 99)), sent(0.6), took=0.7)

    assert 0.5 == spent(values)["wait other"]


def test_wait_that_was_cut():
    """It ends with the call."""
    values = call(sent(0, 0.1, 503, **again(5.0)), took=1.0, **failed("CancelledError"))

    assert {"failed_attempt": 0.1, "wait backoff": 0.9} == spent(values)


def test_bodies():
    """What came after the headers, of the last attempt and of others."""
    values = call(
        sent(0, 0.1, 503, total_duration=0.2, **again(0.5)),
        sent(0.7, 0.1, total_duration=1.1),
        took=0.8,
        total_duration=1.8,
    )

    assert {
        "failed_attempt": 0.1,
        "body": 1.1,
        "wait backoff": 0.5,
        "answer": 0.1,
    } == spent(values)
    assert {"answer": 0.1, "body": 0.4} == spent(call(total_duration=0.5))


def test_overlaps_of_hedges_count_once():
    """The time before the hedge is that of the request that it overtook."""
    values = call(sent(0, 0.75, **LOST), sent(0.5, 0.25, is_hedge=True), took=0.75)

    assert {"superseded": 0.5, "answer": 0.25} == spent(values)


def test_connections():
    """Queue, DNS and connecting come first, and are no time of the server."""
    waits = {"queued": 0.5, "dns": None, "connect": 0.1, "reused": False}
    values = call(sent(0, 1.0, connection=waits), took=1.0)

    assert {"connection_queue": 0.5, "connect": 0.1, "answer": 0.4} == spent(values)


def test_all_of_the_time_in_the_queue():
    """It is cut where the attempt ended."""
    waits = {"queued": 9.0, "dns": 1.0, "connect": 1.0, "reused": False}
    values = call(took=1.0, connection=waits, **failed("ConnectionTimeoutError"))

    assert {"connection_queue": 1.0} == spent(values)


def test_an_attempt_is_split_by_the_calls_inside():
    """The function's own time is part of the answer."""
    waited = call(sent(1, 0.5, 503, **again(1.0)), sent(2.5, 0.5), at=1.0, took=2.0)
    values = function(waited, at=0.0, took=4.0)

    assert {"failed_attempt": 0.5, "wait backoff": 1.0, "answer": 2.5} == spent(values)


def test_calls_at_the_same_time_count_once():
    """What is tried counts before what is waited for."""
    waiting = call(sent(0, 0.0, 503, **again(2.0)), sent(2.0, 1.0), took=3.0)
    values = function(waiting, call(sent(1.0, 1.0), at=1.0, took=1.0), took=3.0)

    assert {"wait backoff": 1.0, "answer": 2.0} == spent(values)


def test_moments_that_are_missing():
    """Attempts then begin with the call."""
    lost = {"request_started_at": None}
    values = call(sent(0, 0.1, **lost), **lost)

    assert {"answer": 0.1} == spent(values)
    assert {"failed_attempt": 0.1} == spent(
        call(sent(5, None, 503), sent(5, 0.1, 503), took=0.1, status=503, **lost)
    )


def test_attempts_that_cannot_be():
    """Nothing is more than the time of the call."""
    values = call(sent(0, 5.0, 503), sent(0, 7.0), took=1.0)

    assert 1.0 == sum(spent(values).values())
    assert {"other": 0.1} == spent(call(sent(-90, 1.0)))


def test_attempts_in_another_order_than_their_moments():
    """A clock that was set back makes no time of two."""
    values = call(
        sent(0.0, 0.3, 503), sent(0.3, 0.1, 503), sent(0.1, 0.3), took=0.4, status=200
    )

    assert 0.4 == pytest.approx(sum(spent(values).values()))


@given(
    st.lists(
        st.tuples(st.floats(0, 2), st.floats(0, 2), st.floats(0, 1), st.booleans()),
        min_size=1,
        max_size=5,
    )
)
def test_parts_add_up_to_the_time_of_the_call(tries):
    """Whatever was tried and waited, hedged or not."""
    children, now = [], 0.0
    for took, wait, body, is_hedge in tries:
        if is_hedge and children:
            children.append(sent(now / 2, took, is_hedge=True))
            continue
        children.append(sent(now, took, 503, total_duration=took + body, **again(wait)))
        now += took + body + wait
    values = call(*children, took=now, total_duration=now + 1)

    assert now + 1 == pytest.approx(sum(spending(SeenCall(values)).values()), abs=1e-3)
