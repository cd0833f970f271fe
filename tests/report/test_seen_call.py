"""What a call consists of."""

from __future__ import annotations

import pytest
from made_lines import call, failed, function, sent

from aioretry_smithy._report.seen_call import SeenCall, TooDeepError

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
    assert [True, False, False] == [attempt.is_first for attempt in seen.attempts]
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


def test_only_hedges():
    """A line may lack the first request."""
    assert 0 == SeenCall(call(sent(is_hedge=True))).retries


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
