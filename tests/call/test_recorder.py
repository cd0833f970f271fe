"""What is written into the records of a call, once and up to its end."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest
from calls import (
    REQUEST,
    begin,
    begin_body,
    call_of,
    end,
    function,
    note_delay,
    race,
    record_of,
)
from multidict import CIMultiDict

from aioretry_smithy._call.recorder import (
    begin_after_wait,
    cause_of,
    end_call,
    follow_stale,
    note_defaults,
    note_length,
    note_request,
    record_end_of_body,
    record_failed_body,
    record_failure,
    record_injected,
    record_race,
    record_return,
    record_superseded,
)


def answered(call):
    """Let a response arrive whose body is to come, and return what is known of it."""
    begin_body(call)
    return call.outcome


ENDS = {
    "answer": lambda call: end(call, 200),
    "return": lambda call: record_return(call, call),
    "failure": lambda call: record_failure(call, call, OSError()),
    "body": lambda call: record_end_of_body(call, answered(call)),
    "failed body": lambda call: record_failed_body(call, answered(call), OSError()),
    "call": end_call,
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
async def test_each_end_wakes_who_waits(end):
    """Once: each waiter looks by itself whether that was what it waits for."""
    woken = []
    call = call_of(begin())
    call.waiters = (lambda: woken.append(call),)
    end(call)

    assert [call] == woken


async def test_headers_of_a_response_wake_nobody():
    """Its body is still to come."""
    call = call_of(begin())
    call.waiters = (pytest.fail,)
    outcome = answered(call)

    assert (0.0, None) == (outcome.ended, outcome.body_ended)


async def test_body_ends_once():
    """A failure after its end is none, and what comes twice keeps its time."""
    call = call_of(begin())
    outcome = answered(call)
    note_length(outcome, 5)
    note_length(outcome, 7)
    record_end_of_body(call, outcome)
    await asyncio.sleep(1.0)
    record_end_of_body(call, outcome)

    assert not record_failed_body(call, outcome, OSError())
    assert (5, 0.0, None) == (outcome.length, outcome.body_ended, outcome.cause)


async def test_body_of_a_response_that_was_replaced_fails_unseen():
    """A decorator has sent once more, and that is the outcome."""
    call = call_of(begin())
    first = answered(call)
    second = answered(call)

    assert not record_failed_body(call, first, OSError())
    assert second.body_ended is None


async def test_function_that_returns_after_a_failure_has_succeeded():
    """A decorator has called it again; a second return keeps the time of the first."""
    ctx = function("f")
    call = call_of(ctx)
    record_failure(call, call, OSError())
    record_return(call, call)
    await asyncio.sleep(1.0)
    record_return(call, call)

    assert (None, 0.0) == (cause_of(call), call.outcome.ended)


@pytest.mark.parametrize(
    "write",
    [
        lambda call: record_return(call, call),
        lambda call: record_failure(call, call, OSError()),
        record_injected,
        record_race,
    ],
)
async def test_settled_record_stays_as_it_is(write):
    """What was left running has no say in what was handed on."""
    call = call_of(begin())
    outcome = answered(call)
    call.is_final = True
    write(call)

    assert (outcome, False, None) == (call.outcome, outcome.is_injected, call.race)


async def test_injected_is_what_has_an_outcome():
    """A fault that only waits makes none."""
    call = call_of(begin())
    record_injected(call)
    before = call.outcome.is_injected
    outcome = answered(call)
    record_injected(call)

    assert (False, True) == (before, outcome.is_injected)


async def test_race_ends_with_its_last_request():
    """The one that counts may have been over before."""
    call = call_of(begin())
    sent = call.begin_request(REQUEST)
    await asyncio.sleep(1.0)
    record_race(call)
    record_superseded(sent)

    assert (1.0, True, False) == (
        call.race.ended,
        sent.race.is_superseded,
        sent.is_hedge,
    )


async def test_superseded_hedge_is_still_a_hedge():
    """It keeps when it was sent."""
    sent = call_of(begin()).begin_request(REQUEST)
    sent.race = race(0.5)
    record_superseded(sent)

    assert (0.5, True) == (sent.race.after, sent.race.is_superseded)


async def test_headers_of_the_session_are_those_of_the_first_request():
    """Later requests that are sent with others have their own."""
    call = call_of(begin(default_headers=CIMultiDict(A="1")))
    first, second, third = (call.begin_request(REQUEST) for _ in range(3))
    note_defaults(call, first, CIMultiDict(A="2"), REQUEST)
    note_defaults(call, second, CIMultiDict(A="2"), REQUEST)
    note_defaults(call, third, CIMultiDict(A="3"), REQUEST.with_header("B", "4"))

    assert CIMultiDict(A="2") == call.default_headers
    assert [None, None, CIMultiDict(A="3", B="4")] == [
        each.sent_headers for each in call.sent
    ]


def waits(call):
    return [(each.delay, each.delay_source) for each in (call, *call.sent)]


async def test_wait_without_attempts_is_before_the_call():
    """It began with the wait, and has no more time for it."""
    call = call_of(begin(timeout=5.0))
    begin_after_wait(call, call, 1.0)
    begin_after_wait(call, call, 0.5)

    assert [(1.5, "rate_limit")] == waits(call)
    assert (0.0, 5.0) == (call.started, call.deadline)


async def test_wait_is_after_the_request_before():
    """Before the first one it is the call's; each begins after it, in full."""
    ctx = begin()
    first = ctx.derive(REQUEST, timeout=2.0)
    begin_after_wait(*record_of(first), 1.0)
    note_delay(first, 0.25, "backoff")
    second = ctx.derive(REQUEST)
    begin_after_wait(*record_of(second), 0.5)

    call = call_of(ctx)
    assert [(1.0, "rate_limit"), (0.75, "rate_limit"), (None, None)] == waits(call)
    assert [(1.0, 3.0), (0.5, None)] == [
        (each.started, each.deadline) for each in call.sent
    ]


@pytest.mark.parametrize(
    ("backoff", "delays"), [(None, [1.0, None, None]), (0.25, [None, 1.25, None])]
)
async def test_wait_after_a_race_is_where_the_backoff_is(backoff, delays):
    """That is after the request that counts, which may be a hedge."""
    ctx = begin()
    _, hedge = ctx.derive(REQUEST), ctx.derive(REQUEST)
    record_of(hedge)[1].race = race(0.5)
    note_delay(hedge, backoff, "backoff")
    begin_after_wait(*record_of(ctx.derive(REQUEST)), 1.0)

    assert delays == [each.delay for each in call_of(ctx).sent]


async def test_wait_of_a_hedge_is_nobody_s():
    """It stands beside the request, whose answer might have come meanwhile."""
    ctx = begin()
    _, hedge = ctx.derive(REQUEST), ctx.derive(REQUEST)
    call, record = record_of(hedge)
    record.race = race(0.5)
    begin_after_wait(call, record, 1.0)

    assert [(None, None)] * 3 == waits(call)
    assert 1.0 == record.started


async def test_wait_for_what_was_sent_before_is_nobody_s():
    """A decorator sends again within the attempt."""
    call = call_of(begin())
    sent = call.begin_request(REQUEST)
    sent.was_sent = True
    begin_after_wait(call, sent, 1.0)

    assert [(None, None)] * 2 == waits(call)
    assert 0.0 == sent.started


async def test_request_in_place_of_a_stale_one_may_be_in_no_race():
    """Most are not."""
    call = call_of(begin())

    assert follow_stale(call, call.begin_request(REQUEST)).race is None


async def test_request_in_place_of_a_stale_one_is_of_the_same_attempt():
    """It has the time that the attempt had, and its part in the race."""
    ctx = begin()
    call, stale = record_of(ctx.derive(REQUEST, timeout=3.0))
    stale.race, stale.request_preview = race(0.5), "start"
    await asyncio.sleep(1.0)
    record_failure(call, stale, ConnectionResetError())
    sent = follow_stale(call, follow_stale(call, stale))

    assert (1.0, 0.0, 3.0) == (sent.started, sent.attempt_started, sent.deadline)
    assert (0.5, "start") == (sent.race.after, sent.request_preview)
    assert (3, 2, 1) == (sent.number, call.resends, call.attempts_made)
    assert (True, 0.0, "stale_connection") == (
        stale.is_final,
        stale.delay,
        stale.delay_source,
    )


async def test_call_that_is_over_keeps_nothing_of_the_caller_s():
    """Of its failures only copies, and the request without its body."""
    request = REQUEST.replace(data=b"body")
    ctx = begin(request)
    call = call_of(ctx)
    cause = call.retry_error = aiohttp.ClientError()
    record_failure(call, call, cause)
    end_call(call)

    assert call.request.options["data"] is None
    assert cause is cause_of(call)
    assert not isinstance(call.retry_error, BaseException)
    assert not isinstance(call.outcome.cause, BaseException)


async def test_request_under_way_is_recorded_after_its_call():
    """One without an outcome is not settled with the call."""
    ctx = begin()
    call, attempt = call_of(ctx), ctx.derive(REQUEST)
    ended, going_on = record_of(attempt)[1], call.begin_request(REQUEST)
    begin_body(attempt)
    end_call(call)
    record_failure(call, going_on, cause := aiohttp.ClientError())

    assert (True, False) == (ended.is_final, going_on.is_final)
    assert cause is cause_of(going_on)
    assert not isinstance(going_on.outcome.cause, BaseException)


async def test_request_that_is_sent_after_the_end_is_not_noted():
    """What a decorator left running changes nothing."""
    call = call_of(begin())
    end_call(call)
    note_request(call, REQUEST.replace(method="PUT"))

    assert call.sent_request is None
