"""Parts of a download: how they are asked for, retried and given up."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest
from aiohttp import ClientTimeout
from chains import NOW, connected, notes_of, retrying
from download_server import FILE, HOLD, Answer, DownloadServer, broken_at
from resumed_calls import download, failure, gather

from aioretry_smithy import (
    AttemptTimeoutError,
    CircuitBreaker,
    CircuitBreakerClient,
    RequestLog,
    ResponseTimeoutError,
    ResumingClient,
    RetryStrategy,
    client_decorator,
)

pytestmark = pytest.mark.slow

RESUMING = ResumingClient.new_decorator()
RETRYING = retrying(RetryStrategy.failsafe(NOW))


async def test_parts_are_retried_as_requests_are():
    """A 503 to a part goes to the retrying client inside."""
    answers = [Answer(stop=5_000), Answer(status=503), Answer(end=True)]
    async with DownloadServer(*answers) as server:
        body, log = await download(server.url, RETRYING, RESUMING)

    assert FILE == body
    assert [200, 503, 206] == [part.response_status for part in log.children]
    assert log.stop_reason is None


async def test_a_final_answer_to_a_part_ends_the_download():
    """The error says which; before it comes the beginning of the version."""
    async with DownloadServer(Answer(stop=5_000), Answer(status=403)) as server:
        got, error, log = await failure(server.url, RESUMING)

    assert FILE[:5_000] == got
    assert isinstance(error, aiohttp.ClientPayloadError)
    assert "cannot resume at byte 5000: the server answers with 403" == str(error)
    assert ("no_retry", False) == (log.stop_reason, log.is_success)
    assert error is log.response_cause
    assert log is RequestLog.of(error)
    assert ["attempt 1: 200 OK", "attempt 2: 403 Status"] == [
        note.split(",")[0].split(": 0.")[0] for note in notes_of(error)
    ]


async def test_a_failure_of_a_part_goes_out_as_it_is():
    """What a decorator further in has raised by mistake is final."""
    opening = []

    @client_decorator
    async def fail_later(delegate, ctx, request):
        if request.headers.get("Range"):
            opening.append(request)
            raise KeyError("a mistake")
        return await delegate.execute(ctx, request)

    got = bytearray()
    async with DownloadServer(*broken_at(5_000)) as server:
        async with (
            connected(None, fail_later, RESUMING) as session,
            session.get(server.url) as response,
        ):
            with pytest.raises(KeyError, match="a mistake"):
                await gather(response, got)
        log = RequestLog.of(response)

    assert FILE[:5_000] == got
    assert ("no_retry", "KeyError") == (log.stop_reason, log.response_cause_type)
    assert 1 == len(opening)


async def test_circuit_breakers_inside_see_the_parts():
    """Each part is a request of its own to them."""
    breaker = CircuitBreaker("files")
    breaking = CircuitBreakerClient.new_decorator(breaker)
    async with DownloadServer(*broken_at(5_000, 9_000)) as server:
        body, log = await download(server.url, breaking, RESUMING)

    assert FILE == body
    assert 3 == log.total_attempts


@pytest.mark.parametrize("chain", [[RESUMING], [RETRYING, RESUMING]])
async def test_parts_that_bring_nothing_are_few(chain):
    """They come after waits, and the failure goes out as it is."""
    empty = Answer(stop=5_000)
    async with DownloadServer(empty, empty) as server:
        waits = ResumingClient.new_decorator(max_resumes_without_progress=1)
        got, error, log = await failure(server.url, *chain[:-1], waits)

    assert FILE[:5_000] == got
    assert isinstance(error, aiohttp.ClientPayloadError)
    assert "backoff_exhausted" == log.stop_reason
    assert 2 == len(server.asked)


async def test_a_part_that_brings_nothing_is_followed_after_a_wait(waits):
    """By the default backoff; one byte sets the count back."""
    answers = [Answer(stop=at) for at in (5_000, 5_000, 5_000, 5_001, 5_001)]
    async with DownloadServer(*answers, Answer(end=True)) as server:
        body, log = await download(server.url, RESUMING)

    assert FILE == body
    delays = [part.delay for part in log.children]
    assert [False, True, True, False, True, False] == [*map(bool, delays)]
    assert [delay for delay in delays if delay] == [wait for wait in waits if wait]
    assert {"backoff"} == {each.delay_source for each in log.children if each.delay}


async def test_a_first_part_that_brings_nothing_is_followed():
    """From the first byte on."""
    async with DownloadServer(*broken_at(0)) as server:
        body, _ = await download(server.url, RESUMING)

    assert FILE == body
    assert [None, "bytes=0-"] == server.ranges


async def test_a_wait_beyond_the_deadline_is_not_begun(waits):
    """The break goes out at once, and the log says why."""
    patient = ResumingClient.new_decorator(max_resumes_without_progress=100)
    async with DownloadServer(Answer(stop=5_000)) as server:
        got, error, log = await failure(
            server.url, patient, timeout=ClientTimeout(total=5.0)
        )

    assert FILE[:5_000] == got
    assert isinstance(error, aiohttp.ClientPayloadError)
    assert "deadline" == log.stop_reason
    # Twice as long would have been too long.
    assert 2.0 < max(waits) < 5.0


async def test_zero_continues_nothing():
    """Then the request goes out as it is, too."""
    never = ResumingClient.new_decorator(max_resumes_without_progress=0)
    async with DownloadServer(*broken_at(5_000)) as server:
        got, error, log = await failure(server.url, never)

    assert FILE[:5_000] == got
    assert isinstance(error, aiohttp.ClientPayloadError)
    assert "identity" != server.asked[0].headers["accept-encoding"]
    assert log.stop_reason is None


@pytest.mark.parametrize("total", [300, None])
@pytest.mark.parametrize("changes", [{}, {"ETag": None}], ids=["can be", "cannot"])
async def test_the_attempt_timeout_ends_at_the_headers(changes, total):
    """Whether or not the answer can be continued."""

    async def read(response):
        body = bytearray()
        async for piece in response.content.iter_any():
            if not body:
                await asyncio.sleep(0.6)
            body += piece
        return bytes(body)

    slow = retrying(RetryStrategy.failsafe(), attempt_timeout=0.4)
    file = FILE * 40
    async with DownloadServer(Answer(end=True, changes=changes, body=file)) as server:
        limit = ClientTimeout(total=total)
        body, _ = await download(server.url, slow, RESUMING, read=read, timeout=limit)

    assert file == body


async def test_an_attempt_that_times_out_before_the_headers_is_retried():
    """As ever, for parts as well."""
    answers = [
        Answer(stop=5_000),
        Answer(wait=asyncio.Event()),
        Answer(end=True),
    ]
    short = retrying(RetryStrategy.failsafe(NOW), attempt_timeout=0.5)
    async with DownloadServer(*answers) as server:
        body, log = await download(server.url, short, RESUMING)

    assert FILE == body
    assert [None, "AttemptTimeoutError", None] == [
        None if each.response_status else each.response_cause_type
        for each in log.children
    ]


async def test_an_attempt_timeout_that_is_final_goes_out():
    """It is not the deadline."""
    answers = [Answer(stop=5_000), Answer(wait=asyncio.Event())]
    short = retrying(RetryStrategy.never(), attempt_timeout=0.5)
    async with DownloadServer(*answers) as server:
        once = ResumingClient.new_decorator(max_resumes_without_progress=1)
        got, error, log = await failure(server.url, short, once)

    assert FILE[:5_000] == got
    assert isinstance(error, AttemptTimeoutError)
    assert "backoff_exhausted" == log.stop_reason


@pytest.mark.parametrize("limit", [None, 0.5])
async def test_the_deadline_holds_for_all_parts(limit):
    """It cuts the body of a part, and names itself."""
    answers = [Answer(stop=5_000), Answer(stop=9_000, end=HOLD)]
    short = retrying(RetryStrategy.never(), attempt_timeout=limit)
    async with DownloadServer(*answers) as server:
        got, error, log = await failure(
            server.url, short, RESUMING, timeout=ClientTimeout(total=1.0)
        )

    assert FILE[:9_000] == got
    assert type(error) is ResponseTimeoutError
    assert "deadline" == log.stop_reason
    assert 0.9 <= log.total_duration


async def test_the_deadline_cuts_the_wait_for_a_part():
    """Which is then none of a version that is gone."""
    answers = [Answer(stop=5_000), Answer(wait=asyncio.Event())]
    async with DownloadServer(*answers) as server:
        _, error, log = await failure(
            server.url, RESUMING, timeout=ClientTimeout(total=0.6)
        )

    assert type(error) is ResponseTimeoutError
    assert "deadline" == log.stop_reason


async def test_a_part_may_be_shorter_than_asked():
    """Then the rest is asked for, without a wait."""

    def short(asked):
        end = min(asked.start + 6_000, len(FILE))
        changes = {
            "Content-Range": f"bytes {asked.start}-{end - 1}/{len(FILE)}",
            "Content-Length": str(end - asked.start),
        }
        return Answer(stop=end, end=True, changes=changes)

    async with DownloadServer(Answer(stop=1_000), short) as server:
        body, log = await download(server.url, RESUMING)

    assert FILE == body
    assert [None, "bytes=1000-", "bytes=7000-", "bytes=13000-", "bytes=19000-"] == (
        server.ranges
    )
    assert {None} == {part.delay for part in log.children}


@pytest.mark.parametrize("says", ["bytes */20000", None])
async def test_without_a_total_the_end_is_a_416(says):
    """A part that ends is not taken for the whole."""
    file = FILE[:20_000]

    def open_ended(asked):
        if asked.start == len(file):
            changes = {"Content-Range": says, "Content-Length": "0"}
            return Answer(status=416, body=b"", end=True, changes=changes)
        end = min(asked.start + 8_000, len(file))
        changes = {"Content-Range": f"bytes {asked.start}-{end - 1}/*"}
        return Answer(stop=end, end=None, body=file, changes=changes | NO_LENGTH)

    first = Answer(stop=4_000, chunk=1_000, body=file)
    async with DownloadServer(first, open_ended) as server:
        body, log = await download(server.url, RETRYING, RESUMING)

    assert file == body
    assert 416 == log.children[-1].response_status
    assert (200, True, None) == (log.response_status, log.is_success, log.stop_reason)


async def test_a_416_without_a_total_is_no_end_of_what_was_cut_off():
    """The file may be shorter by now, or the server may just send no parts."""
    no_more = Answer(status=416, body=b"", end=True)
    first = Answer(stop=4_000, chunk=1_000)
    async with DownloadServer(first, no_more) as server:
        got, error, log = await failure(server.url, RETRYING, RESUMING)

    assert FILE[:4_000] == got
    words = "there is no telling whether it was the end (416)"
    assert f"cannot resume at byte 4000: {words}" == str(error)
    assert "no_retry" == log.stop_reason


NO_LENGTH = {"Content-Length": None}


async def test_a_break_after_the_last_byte_is_the_end():
    """Where the length is known, nothing more is asked for."""
    answers = [Answer(stop=5_000, chunk=500), Answer(stop=len(FILE), chunk=500)]
    async with DownloadServer(*answers) as server:
        body, log = await download(server.url, RESUMING)

    assert FILE == body
    assert (2, None) == (log.total_attempts, log.response_cause)


async def test_a_part_that_ends_without_a_byte_brought_nothing():
    """It ends well, as far as aiohttp knows; but it cannot go on for ever."""

    def nothing(asked):
        return Answer(stop=asked.start, changes=NO_LENGTH)

    once = ResumingClient.new_decorator(max_resumes_without_progress=1)
    async with DownloadServer(Answer(stop=5_000), nothing) as server:
        got, error, log = await failure(server.url, once)

    assert FILE[:5_000] == got
    assert "cannot resume at byte 5000: the parts are empty" == str(error)
    assert "backoff_exhausted" == log.stop_reason
