"""The state of a call: its time, its requests, and who waits for its end."""

from __future__ import annotations

import pytest
from calls import REQUEST, begin, call_of, end, end_call

from aioretry_smithy import HttpRequest

URL = "http://example.com/"


@pytest.mark.parametrize(
    ("deadline", "expected"), [(None, 3.0), (5.0, 3.0), (2.0, 2.0)]
)
async def test_deadline_is_moved_up_to_that_of_the_attempt_around(deadline, expected):
    """A call in an attempt of a function ends with it at the latest."""
    call = call_of(begin())
    call.cap = 3.0
    call.move_deadline(deadline)

    assert expected == call.deadline


async def test_request_that_begins_reopens_a_call_that_is_not_over():
    """A decorator outside may send anew after what looked like the end."""
    ctx = begin()
    end(ctx, 200)
    call_of(ctx).begin_request(REQUEST)

    assert ctx.log.response_status is None


async def test_request_that_begins_too_late_changes_no_outcome():
    """As that of a task which a decorator has left running."""
    ctx = begin()
    end(ctx, 200)
    end_call(ctx)
    call_of(ctx).begin_request(REQUEST)

    assert 200 == ctx.log.response_status


async def test_resources_are_made_once():
    """All that a call closes at its end is in one place."""
    call = call_of(begin())

    assert call.own_resources() is call.own_resources()


async def test_waiters_are_woken_once():
    """Each looks again by itself whether the call has ended."""
    woken = []
    call = call_of(begin())
    call.waiters = (lambda: woken.append(1), lambda: woken.append(2))
    call.wake()
    call.wake()

    assert [1, 2] == woken


async def test_call_inside_counts_from_the_start_of_the_outermost():
    """Also where the clock of the machine was set meanwhile."""
    outer = begin()
    middle = begin(inside=outer.log)
    inner = begin(inside=middle.derive(REQUEST).log)

    assert call_of(outer).epoch == call_of(inner).epoch
    assert call_of(middle) is call_of(inner).around()


async def test_record_has_the_request_without_its_body():
    """That of the caller is shared; the attempt itself sends the whole request."""
    request = HttpRequest("POST", URL, data=b"body")
    ctx = begin(request)
    first = ctx.derive(request)
    again = request.with_header("A", "1")
    second = ctx.derive(again)

    assert (request, again) == (first.request, second.request)
    assert first.record.request.options["data"] is None
    assert second.record.request.options["data"] is None
    assert "1" == second.record.request.headers["A"]


async def test_requests_sent_again_are_no_attempts():
    """The number counts passes; the record has that of the request."""
    ctx = begin()
    call = call_of(ctx)
    first = ctx.derive(ctx.request)
    first.record = call.begin_request(ctx.request)
    call.resends += 1
    second = ctx.derive(ctx.request)

    assert [(1, 2), (2, 3)] == [
        (each.attempt, each.record.number) for each in (first, second)
    ]
