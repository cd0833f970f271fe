"""Attempts: the state of one pass through the inner clients."""

from __future__ import annotations

from calls import begin, call_of

from aioretry_smithy import HttpRequest
from aioretry_smithy._call.attempt import Attempt

URL = "http://example.com/"


async def test_record_has_the_request_without_its_body():
    """That of the caller is shared; the attempt itself sends the whole request."""
    request = HttpRequest("POST", URL, data=b"body")
    call = call_of(begin(request))
    first = Attempt(call, request)
    again = request.with_header("A", "1")
    second = Attempt(call, again)

    assert (request, again) == (first.to_send, second.to_send)
    assert call.request is first.record.request
    assert first.record.request.options["data"] is None
    assert second.record.request.options["data"] is None
    assert "1" == second.record.request.headers["A"]


async def test_requests_sent_again_are_no_attempts():
    """The number counts passes; the record has that of the request."""
    ctx = begin()
    call = call_of(ctx)
    first = Attempt(call, ctx.request)
    first.record = call.begin_request(ctx.request)
    call.resends += 1
    second = Attempt(call, ctx.request)

    assert [(1, 2), (2, 3)] == [
        (each.number, each.record.number) for each in (first, second)
    ]
