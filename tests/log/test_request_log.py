"""The log of a call, before, during and after, with few or thousands of attempts."""

import asyncio
import copy
import gc
import itertools
import pickle
import time
import weakref
from datetime import UTC, datetime, timedelta

import aiohttp
import pytest
from calls import REQUEST, begin, begin_body, end, end_body, end_call, http, preview
from chains import SAFELY, URL, connected, log_of, notes_of, refused, retrying, session

from aioretry_smithy import (
    HedgingClient,
    RequestLog,
    RetryingClient,
    RetryStrategy,
    capture_logs,
    client_decorator,
    is_unprocessed,
    new_response,
)


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


async def test_end_of_a_body_comes_once():
    """A late second notice changes nothing."""
    ctx = begin()
    begin_body(ctx)
    end_body(ctx, 7)
    await asyncio.sleep(1.0)
    end_body(ctx, 9, ValueError())

    assert (7, 0.0) == (ctx.log.response_length, ctx.log.total_duration)
    assert ctx.log.response_cause is None


async def test_failure_after_a_response_has_no_preview_of_it():
    """The beginning of a response that does not count is not shown."""
    ctx = begin()
    begin_body(ctx)
    preview(ctx, received=b"begun")
    assert "begun" == ctx.log.response_content_preview
    end(ctx, TimeoutError())

    assert ctx.log.response_content_preview is None


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

    async def call():
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


MANY = 2000


KEPT = [*range(1, 51), *range(MANY - 49, MANY + 1)]


def endless(answer):
    return (answer() if callable(answer) else answer for _ in itertools.count())


async def test_first_and_last_attempts_are_kept():
    """Fifty of each; the count says all."""
    client = session(endless(503), retrying(SAFELY, max_total_attempts=MANY))
    log = await log_of(client)

    assert KEPT == [each.attempt for each in log.children]
    assert MANY == log.total_attempts == log.to_dict()["total_attempts"]
    assert f"{MANY} attempts" in log.render()
    assert f"and {MANY - 100} more attempts" in log.render()
    assert True is log.sent


@pytest.mark.slow
@pytest.mark.parametrize("is_same", [True, False], ids=["one error", "many errors"])
async def test_notes_are_about_those_that_are_kept(is_same):
    """They stay short."""
    error = refused()
    answers = endless(error if is_same else refused)
    client = session(answers, retrying(SAFELY, max_total_attempts=MANY))
    async with client:
        with pytest.raises(aiohttp.ClientConnectorError) as caught:
            await client.get(URL)

    notes = notes_of(caught.value)
    assert [f"attempt {number}" for number in KEPT] == [
        note.partition(":")[0] for note in notes
    ]
    assert MANY == RequestLog.of(caught.value).total_attempts


@pytest.mark.slow
async def test_attempts_take_no_quadratic_time():
    """Eight times as many attempts take about eight times as long."""

    async def seconds(many):
        client = session(endless(refused), retrying(SAFELY, max_total_attempts=many))
        started = time.process_time()
        await log_of(client)
        return time.process_time() - started

    few, many = [min([await seconds(n) for _ in range(2)]) for n in (250, MANY)]

    assert many < 25 * few


async def test_request_that_was_sent_counts_though_it_is_not_kept():
    """A refusal after a hundred requests does not make the attempt unprocessed."""

    @client_decorator
    async def insisting(delegate, ctx, request):
        for _ in range(60):
            await delegate.execute(ctx.derive(request), request)
        for _ in range(120):
            try:
                await delegate.execute(ctx.derive(request), request)
            except aiohttp.ClientConnectorError as error:
                last = error
        raise last

    answers = [*[200] * 60, *[refused() for _ in range(120)]]
    retry = retrying(SAFELY, max_total_attempts=2)
    log = await log_of(session(answers, insisting, retry), method="POST")

    assert False is is_unprocessed(log.response_cause)
    assert 181 == log.total_attempts
    assert True is log.sent


async def test_request_under_way_is_kept():
    """However many hedges there are."""
    release = []

    async def silent(ctx, request):
        gate = asyncio.Event()
        release.append(gate)
        if len(release) == 130:
            return new_response(request, 200)
        await gate.wait()
        raise AssertionError

    log = await log_of(
        session(
            itertools.repeat(silent), HedgingClient.new_decorator(0.1, max_hedges=150)
        )
    )

    assert (200, 130, 130) == (
        log.response_status,
        log.total_attempts,
        len(log.children),
    )
    assert 129 == sum(each.superseded for each in log.children)
