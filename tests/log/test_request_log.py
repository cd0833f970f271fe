"""The log of a call, before, during and after."""

from __future__ import annotations

import asyncio
import copy
import gc
import pickle
import weakref
from datetime import UTC, datetime, timedelta

import aiohttp
import pytest
from calls import REQUEST, begin, begin_body, end, end_body, end_call, http, preview
from chains import connected, retrying, session
from multidict import CIMultiDict
from yarl import URL

from aioretry_smithy import (
    HttpRequest,
    RequestLog,
    RetryingClient,
    RetryStrategy,
    capture_logs,
    new_response,
)


async def test_log_in_flight():
    """Values that are not known yet are None, and no attribute raises."""
    log = begin().log

    assert (None, None, None, None, None) == (
        log.response_status,
        log.response_reason,
        log.response_headers,
        log.response_cause,
        log.response_length,
    )
    assert log.duration is log.total_duration is None
    assert not log.is_complete
    assert log.delay is log.delay_source is log.stop_reason is None


async def test_root_and_child_know_each_other():
    """The root has the attempts in order, each of which knows its way back."""
    ctx = begin()
    first, second = ctx.derive(REQUEST).log, ctx.derive(REQUEST).log
    root = ctx.log

    assert (first, second) == root.children
    assert root is root.root is first.root is second.root
    assert root is first.parent is second.parent
    assert root.parent is None
    assert (None, 1, 2) == (root.attempt, first.attempt, second.attempt)
    assert (2, None) == (root.total_attempts, first.total_attempts)
    assert () == first.children


async def test_log_of_an_attempt_that_is_kept_alone_shows_the_same():
    """It keeps nothing of the call but what its views need."""
    url = "http://user:secret@example.com/?key=secret"
    ctx = http(url, timeout=10.0, default_headers={"Cookie": "secret"})
    first = ctx.derive(ctx.request, timeout=1.0).log
    end(ctx.derive(ctx.request), TimeoutError())
    before = first.to_dict(), first.render()
    root = weakref.ref(ctx.log)
    del ctx

    assert root() is None
    assert first is first.root.children[0]
    assert (1, None) == (first.attempt, first.total_attempts)
    assert before == (first.to_dict(), first.render())
    assert "secret" not in str(before)


async def test_failure_after_the_end_of_the_call_keeps_no_exception():
    """Such as that of an attempt that nobody waited for."""
    ctx = begin()
    late = ctx.derive(REQUEST)
    end_call(ctx)
    cause = aiohttp.ClientError("late")
    end(late, cause)
    reference = weakref.ref(cause)
    same = late.log.response_cause is cause
    del cause

    assert same
    assert reference() is None
    assert "late" == str(late.log.response_cause)


async def test_ending_a_call_twice_changes_nothing():
    """The copies that it keeps of exceptions stay."""
    ctx = begin()
    end(ctx, TimeoutError("late"))
    end_call(ctx)
    kept = ctx.log.response_cause
    end_call(ctx)

    assert kept is ctx.log.response_cause


async def test_body_that_failed_while_the_call_ran_has_the_log():
    """A reader of the body meets the same exception."""
    ctx, cause = begin(), aiohttp.ClientPayloadError()
    begin_body(ctx)
    end_body(ctx, 3, cause)
    end_call(ctx)

    assert ctx.log is RequestLog.of(cause)
    assert cause is ctx.log.response_cause


async def test_total_attempts_without_retries():
    """A call that nothing retries was one attempt."""
    log = begin().log

    assert 1 == log.total_attempts
    assert () == log.children


async def test_request_side():
    """Name, method, URL with ``params`` and headers over the session's are there."""
    request = HttpRequest(
        "post", "/a?x=1", base_url=URL("http://h"), params={"y": 2}, headers={"A": "1"}
    )
    log = begin(request, default_headers=CIMultiDict(a="0", B="0")).log

    assert ("POST", "POST") == (log.name, log.request_method)
    assert URL("http://h/a?x=1&y=2") == log.request_url
    assert {"A": "1", "B": "0"} == dict(log.request_headers)


async def test_root_shows_the_request_of_the_caller():
    """What a decorator outside of the retrying client changes is in the attempts.

    Of the headers, those that were sent first.
    """
    ctx = begin()
    first = REQUEST.replace(method="PUT", url="http://a.example/", headers={"A": "1"})
    ctx.derive(first)
    ctx.derive(first.replace(method="DELETE", headers={"A": "2"}))
    log = ctx.log

    assert ("GET", REQUEST.url) == (log.request_method, log.request_url)
    assert ["PUT", "DELETE"] == [each.request_method for each in log.children]
    assert {first.url} == {each.request_url for each in log.children}
    assert {"A": "1"} == dict(log.request_headers)


async def test_headers_become_those_that_were_sent():
    """Once answered, the log shows what aiohttp made of the headers."""
    ctx = begin(default_headers={"B": "0"})
    response = new_response(REQUEST.with_header("User-Agent", "aiohttp"))
    begin_body(ctx, response)

    assert {"User-Agent": "aiohttp"} == dict(ctx.log.request_headers)


async def test_headers_are_those_of_the_first_hop():
    """After a redirect the log shows what the caller's own server was sent."""
    ctx = begin()
    first = new_response(REQUEST.with_header("A", "first"), 302)
    last = new_response(REQUEST.with_header("A", "last"))
    last._history = (first,)
    begin_body(ctx, last)

    assert {"A": "first"} == dict(ctx.log.request_headers)


async def test_start_is_a_date_with_a_timezone():
    """An attempt begins as much later as the loop's clock says."""
    ctx = begin()
    await asyncio.sleep(90.0)
    attempt = ctx.derive(REQUEST)
    started = ctx.log.request_started_at

    # In virtual time the day began with the loop.
    assert timedelta(0) <= datetime.now(UTC) - started < timedelta(minutes=1)
    assert 90.0 == (attempt.log.request_started_at - started).total_seconds()


async def test_later_calls_have_later_dates_in_virtual_time():
    """A call after a minute began a minute later, whatever the machine says."""
    first = begin().log
    await asyncio.sleep(60.0)
    second = begin().log

    passed = second.request_started_at - first.request_started_at
    assert 60.0 == passed.total_seconds()


async def test_response_side():
    """Status, reason and headers come with the headers, the rest with the body."""
    ctx = begin()
    log = ctx.log
    await asyncio.sleep(1.0)
    begin_body(ctx, 404, headers={"A": "1"})
    assert (404, "Not Found") == (log.response_status, log.response_reason)
    assert {"A": "1"} == dict(log.response_headers)
    assert (1.0, None, None) == (log.duration, log.total_duration, log.response_length)
    assert not log.is_complete
    await asyncio.sleep(2.0)
    end_body(ctx, 7)

    assert (1.0, 3.0, 7) == (log.duration, log.total_duration, log.response_length)
    assert log.is_complete
    assert log.response_cause is None


async def test_end_of_a_body_comes_once():
    """A late second notice changes nothing."""
    ctx = begin()
    begin_body(ctx)
    end_body(ctx, 7)
    await asyncio.sleep(1.0)
    end_body(ctx, 9, ValueError())

    assert (7, 0.0) == (ctx.log.response_length, ctx.log.total_duration)
    assert ctx.log.response_cause is None


async def test_failure_completes_a_log():
    """A failure is the end: both durations are known, and there is no response."""
    ctx, cause = begin(), TimeoutError()
    log = ctx.log
    await asyncio.sleep(2.0)
    end(ctx, cause)

    assert cause is log.response_cause
    assert (2.0, 2.0) == (log.duration, log.total_duration)
    assert log.is_complete
    assert log.response_status is log.response_headers is log.response_length is None


async def test_failure_recorded_twice_keeps_its_time():
    """Each client may record what passes through it; the innermost was first."""
    ctx, cause = begin(), TimeoutError()
    end(ctx, cause)
    await asyncio.sleep(1.0)
    end(ctx, cause)

    assert 0.0 == ctx.log.duration


async def test_response_after_a_failure_counts():
    """A decorator that answers in place of a failure has the last word."""
    ctx = begin()
    end(ctx, TimeoutError())
    end(ctx, 203)

    assert 203 == ctx.log.response_status
    assert ctx.log.response_cause is None


async def test_failure_after_a_response_counts():
    """A decorator that refuses a response leaves no half of it in the log."""
    ctx, cause = begin(), ValueError()
    begin_body(ctx)
    end(ctx, cause)

    assert cause is ctx.log.response_cause
    assert ctx.log.response_status is ctx.log.response_reason is None


async def test_failure_after_a_response_has_no_preview_of_it():
    """The beginning of a response that does not count is not shown."""
    ctx = begin()
    begin_body(ctx)
    preview(ctx, received=b"begun")
    assert "begun" == ctx.log.response_content_preview
    end(ctx, TimeoutError())

    assert ctx.log.response_content_preview is None


async def test_root_shows_the_answer_of_its_last_attempt():
    """The response is the child's; the durations run from the start of the call."""
    ctx = begin()
    await asyncio.sleep(1.0)
    attempt = ctx.derive(REQUEST)
    await asyncio.sleep(2.0)
    begin_body(attempt, 201)
    end_call(ctx, attempt)
    await asyncio.sleep(4.0)
    end_body(attempt, 5)

    assert (2.0, 6.0) == (attempt.log.duration, attempt.log.total_duration)
    assert (3.0, 7.0) == (ctx.log.duration, ctx.log.total_duration)
    assert (201, "Created", 5) == (
        ctx.log.response_status,
        ctx.log.response_reason,
        ctx.log.response_length,
    )
    assert ctx.log.is_complete


async def test_repr_is_the_first_line():
    """A log in a debugger says what was called and how it ended."""
    log = begin().log

    assert "<RequestLog GET http://example.com/  ->  no response yet>" == repr(log)


async def test_log_stays_behind_when_its_exception_is_pickled():
    """It knows the event loop, which cannot travel; a copy keeps it."""
    async with session([ValueError("no")]) as client:
        with pytest.raises(ValueError, match="no") as caught:
            await client.get("http://localhost/")
    travelled = pickle.loads(pickle.dumps(caught.value))

    assert "no" == str(travelled)
    assert RequestLog.of(travelled, None) is None
    assert RequestLog.of(copy.deepcopy(caught.value)) is RequestLog.of(caught.value)
    log = RequestLog.of(caught.value)
    assert log is copy.copy(log)


async def test_log_lets_go_of_the_body_when_the_call_is_over():
    """A log may be kept for long; megabytes of uploads must not be."""

    async def call() -> weakref.ref[aiohttp.FormData]:
        body = aiohttp.FormData({"name": "value"})
        async with session(
            [503, 200], RetryingClient.new_decorator(RetryStrategy.failsafe())
        ) as client:
            await client.put("http://localhost/", data=body)
        return weakref.ref(body)

    gc.collect()
    gc.disable()
    try:
        with capture_logs() as logs:
            body = await call()

        assert body() is None
        assert 2 == logs[0].total_attempts
    finally:
        gc.enable()


async def test_log_can_be_awaited_by_several():
    """One that is cancelled meanwhile leaves the others alone."""
    ctx = begin()
    first, second = (asyncio.create_task(ctx.log.when_complete()) for _ in range(2))
    await asyncio.sleep(1.0)
    first.cancel()
    end(ctx, 200)
    end_call(ctx)

    assert ctx.log is await second
    assert first.cancelled()


@pytest.mark.parametrize("decorators", [[], [retrying()]], ids=["plain", "retried"])
async def test_method_of_bytes_is_in_every_view(decorators):
    """It is refused by aiohttp, and the log can be read all the same."""
    async with connected("http://localhost", *decorators) as client:
        with capture_logs() as logs, pytest.raises(TypeError, match="bytes"):
            await client.request(b"GET", "/orders")
    log = logs[0]
    fields = log.to_dict()

    assert ["b'GET'"] * 2 == [fields["name"], fields["request_method"]]
    assert "b'GET'" == log.to_har()["log"]["entries"][0]["request"]["method"]
    assert log.to_curl().endswith("http://localhost/orders")
