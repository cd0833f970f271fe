"""What is written into the records of a call, once and up to its end."""

from __future__ import annotations

import aiohttp
import pytest
from calls import REQUEST, begin, begin_body, call_of, end
from multidict import CIMultiDict

from aioretry_smithy._call.recorder import (
    begin_after_wait,
    cause_of,
    end_call,
    note_defaults,
    record_end_of_body,
    record_failed_body,
    record_failure,
    record_injected,
    record_return,
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


async def test_body_of_a_response_that_was_replaced_fails_unseen():
    """A decorator has sent once more, and that is the outcome."""
    call = call_of(begin())
    first = answered(call)
    second = answered(call)

    assert not record_failed_body(call, first, OSError())
    assert second.body_ended is None


async def test_injected_is_what_has_an_outcome():
    """A fault that only waits makes none."""
    call = call_of(begin())
    record_injected(call)
    before = call.outcome.is_injected
    outcome = answered(call)
    record_injected(call)

    assert (False, True) == (before, outcome.is_injected)


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


async def test_wait_for_what_was_sent_before_is_nobody_s():
    """A decorator sends again within the attempt."""
    call = call_of(begin())
    sent = call.begin_request(REQUEST)
    sent.was_sent = True
    begin_after_wait(call, sent, 1.0)

    assert (None, None) == (call.delay, call.delay_source)
    assert 0.0 == sent.started


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
