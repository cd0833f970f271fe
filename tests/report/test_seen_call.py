"""What a call consists of, and where its time went."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_lines import call, failed, function, sent

from aioretry_smithy._report.seen_call import SeenCall, TooDeepError, spending

AGAIN = {"delay": 0.5, "delay_source": "backoff"}
STALE = {"delay": 0.0, "delay_source": "stale_connection"}
LOST = {"superseded": True, "is_success": True}


def counts(values):
    seen = SeenCall(values)
    return {
        name: getattr(seen, name)
        for name in ("requests", "extra", "retries", "hedges", "resends")
    }


def test_a_call_without_attempts_made_one():
    """Nothing retries, or an old line does not say."""
    seen = SeenCall(call())

    assert 1 == len(seen.attempts)
    assert seen.is_success_at_once
    assert (1, 0, 0, 0, 0) == tuple(counts(call()).values())


def test_retries():
    """Attempts after the first, with the waits between them."""
    values = call(sent(0, 0.1, 503, **AGAIN), sent(0.6, 0.1, 503, **AGAIN), sent(1.2))
    seen = SeenCall(values)

    assert (3, 2, 2, 0, 0) == tuple(counts(values).values())
    assert [True, True, False] == [attempt.is_retried for attempt in seen.attempts]
    assert 1.0 == seen.waited
    assert seen.is_success
    assert not seen.is_success_at_once


def test_hedges_are_no_retries():
    """They belong to the attempt that they were sent beside."""
    values = call(sent(0, 1.0, **LOST), sent(0.5, 0.1, is_hedge=True), took=0.6)
    seen = SeenCall(values)

    assert (2, 1, 0, 1, 0) == tuple(counts(values).values())
    assert seen.is_success_at_once
    assert not any(attempt.is_retried for attempt in seen.attempts)


def test_resends_are_no_retries():
    """The connection was stale, which the strategy never heard of."""
    broken = sent(0, 0.0, **failed("ServerDisconnectedError"), **STALE)
    values = call(broken, sent(0.1))

    assert (2, 1, 0, 0, 1) == tuple(counts(values).values())
    assert SeenCall(values).is_success_at_once


CUT = failed("ClientPayloadError", response_status=200)
REST = {"request_headers": {"Range": "bytes=5-", "If-Range": '"a"'}}
WAITED = {"delay": 0.1, "delay_source": "backoff"}


@pytest.mark.parametrize(
    ("first", "second", "resumes"),
    [
        (CUT, {}, 1),
        ({**CUT, "response_status": 206}, {}, 1),
        ({**CUT, **WAITED}, REST, 1),
        ({}, REST, 1),
        ({**CUT, **WAITED}, {}, 0),
        ({**CUT, **WAITED}, {"request_headers": {"Range": "bytes=5-"}}, 0),
        (failed("E"), REST, 0),
        ({}, {}, 0),
    ],
)
def test_parts_of_a_download_are_no_retries(first, second, resumes):
    """Headers tell them, and that nothing was waited for, in lines without headers."""
    seen = SeenCall(call(sent(0, 0.1, **first), sent(0.2, **second)))

    assert (resumes, 1 - resumes) == (seen.resumes, seen.retries)
    assert [not resumes, False] == [attempt.is_retried for attempt in seen.attempts]


def test_parts_of_downloads_inside():
    """They are those of the call too."""
    seen = SeenCall(function(call(sent(**CUT), sent(0.2, **REST))))

    assert (1, 0) == (seen.resumes, seen.retries)


def test_another_token_is_no_retry():
    """The attempt went on with it, after a wait."""
    refused = sent(0, 0.1, 401, delay=0.5, delay_source="token")
    seen = SeenCall(values := call(refused, sent(0.6)))

    assert (2, 1, 0, 0, 1) == tuple(counts(values).values())
    assert 0.5 == seen.waited
    assert seen.is_success_at_once


def test_resend_of_a_hedge():
    """It is a resend; the hedge counts once."""
    broken = sent(0.5, 0.0, is_hedge=True, **failed("ServerDisconnectedError"), **STALE)
    values = call(sent(0, 1.0, **LOST), broken, sent(0.6, is_hedge=True), sent(1.0))

    assert (4, 3, 1, 1, 1) == tuple(counts(values).values())


def test_a_fallback_is_no_success_of_the_attempts():
    """It made the call one, but not what retries would have been spared for."""
    seen = SeenCall(call(sent(0, 0.1, 503)))

    assert seen.is_success
    assert not seen.is_success_at_once


def test_requests_of_functions_are_those_inside():
    """A retried function repeats all of them."""
    inside = call(sent(0, 0.1, 503, **AGAIN), sent(0.6))
    once = function(inside, call())
    twice = {
        **function(),
        "calls": [],
        "children": [
            {"attempt": 1, **once, **failed("E"), **AGAIN},
            {"attempt": 2, **function(call(), call())},
        ],
    }

    assert (3, 1, 1, 0, 0) == tuple(counts(once).values())
    assert (5, 3, 2, 0, 0) == tuple(counts(twice).values())
    assert not SeenCall(once).is_success_at_once


def test_calls_that_were_not_kept_are_requests_too():
    """Only their number is known."""
    assert 4 == counts(function(call(), dropped_calls=3))["requests"]


def test_a_function_may_succeed_though_a_call_inside_failed():
    """It took that for an answer, with and without retries."""
    assert SeenCall(function(call(status=404))).is_success_at_once


def test_calls_nested_without_end():
    """They are refused before Python gives up."""
    values = call()
    for _ in range(30):
        values = function(values)

    with pytest.raises(TooDeepError):
        SeenCall(values)


def test_one_hedge_alone():
    """It waits like any other attempt."""
    seen = SeenCall(call(sent(is_hedge=True, **AGAIN)))

    assert (1, 0.5) == (seen.hedges, seen.waited)


def spent(values):
    parts = spending(SeenCall(values))
    return {
        " ".join(filter(None, part)): round(seconds, 6)
        for part, seconds in parts.items()
    }


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
