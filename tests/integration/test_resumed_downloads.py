"""Downloads that break are continued: the caller reads one stream."""

from __future__ import annotations

import asyncio
import gc
import json
import weakref

import aiohttp
import pytest
from aiohttp import ClientTimeout
from chains import NOW, Always, connected, notes_of, pass_on, retrying
from download_server import FILE, HOLD, TAG, Answer, DownloadServer, broken_at
from fake_responses import FakeResponse
from multidict import CIMultiDict

from aioretry_smithy import (
    AttemptTimeoutError,
    CircuitBreaker,
    CircuitBreakerClient,
    ConcurrencyLimit,
    ConcurrencyLimitingClient,
    EndpointGroup,
    EndpointSelectionStrategy,
    FailFastError,
    LoggingClient,
    RequestLog,
    ResponseTimeoutError,
    ResumingClient,
    RetryConfig,
    RetryStrategy,
    SessionBuilder,
    capture_logs,
    client_decorator,
    request_options,
)
from aioretry_smithy.testing import FaultInjectingClient, InjectedFault

RESUMING = ResumingClient.new_decorator()
RETRYING = retrying(RetryStrategy.failsafe(NOW))
CHAINS = {
    "alone": [RESUMING],
    "around retries": [RETRYING, RESUMING],
    "with a foreign decorator between": [RETRYING, pass_on, RESUMING],
    "with a foreign decorator inside": [pass_on, RETRYING, RESUMING],
    "with a foreign decorator alone inside": [pass_on, RESUMING],
    "with a foreign decorator outside": [RETRYING, RESUMING, pass_on],
}
TIMES = {
    "ETag": None,
    "Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT",
    "Date": "Sun, 06 Nov 1994 08:50:37 GMT",
}


async def download(url, *decorators, read=None, options=None, **settings):
    """Read a body whole; return it with the log of its call."""
    async with connected(None, *decorators, **settings) as session:
        async with session.get(url, **(options or {})) as response:
            body = await (response.read() if read is None else read(response))
        return body, RequestLog.of(response)


async def failure(url, *decorators, **settings):
    """Read as much of a body as comes; return that, the failure and the log."""
    got = bytearray()
    async with connected(None, *decorators, **settings) as session:
        async with session.get(url) as response:
            with pytest.raises((aiohttp.ClientError, TimeoutError)) as error:
                await _gather(response, got)
        return bytes(got), error.value, RequestLog.of(response)


async def _until(condition):
    while True:
        if condition():
            return
        await asyncio.sleep(0.01)


async def _gather(response, got):
    async for piece in response.content.iter_any():
        got += piece


async def chunked(response):
    return b"".join([piece async for piece in response.content.iter_chunked(1000)])


async def chunks(response):
    return b"".join([piece async for piece, _ in response.content.iter_chunks()])


async def lines(response):
    return b"".join([line async for line in response.content])


async def exactly(response):
    return await response.content.readexactly(len(FILE))


async def text(response):
    return (await response.text()).encode()


async def in_pieces(response):
    pieces = []
    while not response.content.at_eof():
        pieces.append(await response.content.read(777))
    return b"".join(pieces)


@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS)
@pytest.mark.parametrize("end", [None, ConnectionResetError], ids=["closed", "reset"])
async def test_a_broken_download_comes_whole(chain, end):
    """Whatever decorators there are, and however it breaks."""
    async with DownloadServer(*broken_at(5_000, 5_001, 17_000, end=end)) as server:
        body, log = await download(server.url, *chain)

    assert FILE == body
    assert 200 == log.response_status
    if end is None:
        # Otherwise bytes may be lost that were under way.
        assert [None, "bytes=5000-", "bytes=5001-", "bytes=17000-"] == server.ranges
        assert [200, 206, 206, 206] == [part.response_status for part in log.children]


@pytest.mark.parametrize(
    "read",
    [chunked, chunks, lines, exactly, text, in_pieces],
    ids=lambda it: it.__name__,
)
@pytest.mark.parametrize("chunk", [0, 700])
async def test_every_way_to_read_gives_the_same(read, chunk):
    """Also where the parts come in HTTP chunks."""
    async with DownloadServer(*broken_at(7_000, 14_000, chunk=chunk)) as server:
        body, _ = await download(server.url, RESUMING, read=read)

    assert FILE == body


async def test_json_is_read_across_a_break():
    """The response decodes it when it is whole."""
    body = json.dumps({"rows": [*range(5_000)]}).encode()
    type_of_json = {"Content-Type": "application/json"}
    answers = broken_at(9_000, body=body, changes=type_of_json)
    async with DownloadServer(*answers) as server:
        value, _ = await download(
            server.url, RESUMING, read=lambda response: response.json()
        )

    assert {"rows": [*range(5_000)]} == value


async def test_ends_of_http_chunks_are_seen():
    """Each chunk that came whole ends as it did; where it broke none does."""
    ends = []

    async def read(response):
        at = 0
        async for piece, is_end in response.content.iter_chunks():
            at += len(piece)
            if is_end:
                ends.append(at)

    async with DownloadServer(*broken_at(12_000, chunk=5_000)) as server:
        await download(server.url, RESUMING, read=read)

    assert [5_000, 10_000, 12_000, 17_000, 22_000] == ends


async def test_what_had_arrived_before_a_break_is_kept():
    """A slow reader gets it, and each byte is sent just once."""

    async def read(response):
        await asyncio.sleep(0.1)
        return await response.read()

    async with DownloadServer(*broken_at(12_000, chunk=5_000)) as server:
        body, _ = await download(server.url, RESUMING, read=read)

    assert FILE == body
    assert [None, "bytes=12000-"] == server.ranges


async def test_a_download_without_a_break_is_left_alone():
    """It has one part, and asks for the body as it is."""
    async with DownloadServer(Answer(end=True)) as server:
        body, log = await download(server.url, RETRYING, RESUMING)

    assert FILE == body
    assert 1 == log.total_attempts
    assert "identity" == server.asked[0].headers["accept-encoding"]
    assert "range" not in server.asked[0].headers


async def test_parts_say_the_version_that_they_are_to_be_of():
    """By the strong ETag, or by the time of the last change."""
    async with DownloadServer(*broken_at(5_000)) as server:
        await download(server.url, RESUMING)
    async with DownloadServer(*broken_at(5_000, changes=TIMES)) as of_times:
        body, _ = await download(of_times.url, RESUMING)

    assert FILE == body
    assert TAG == server.asked[1].headers["if-range"]
    assert TIMES["Last-Modified"] == of_times.asked[1].headers["if-range"]


async def test_the_log_of_a_download_shows_its_parts():
    """The call has the first status, the last end, and no failure."""
    async with DownloadServer(*broken_at(5_000, 9_000)) as server:
        _, log = await download(server.url, RETRYING, RESUMING)
    first, second, last = log.children

    assert (200, None, None, True) == (
        log.response_status,
        log.response_cause,
        log.stop_reason,
        log.is_success,
    )
    assert (len(FILE), True) == (log.response_length, log.is_complete)
    assert [5_000, 4_000, len(FILE) - 9_000] == [
        part.response_length for part in log.children
    ]
    assert ["ClientPayloadError", "ClientPayloadError", None] == [
        part.response_cause_type for part in log.children
    ]
    assert first.delay is second.delay is last.delay is None
    assert log.total_duration >= last.started - log.started
    assert "Content-Range" not in log.response_headers
    assert "3 attempts" in log.render()


async def test_lines_after_the_body_come_when_the_last_part_has_ended(caplog):
    """With the length of all of it."""
    caplog.set_level("INFO", "aioretry_smithy")
    logging = LoggingClient.new_decorator(
        log_after="body", successful_response_log_level=20
    )
    async with DownloadServer(*broken_at(5_000)) as server:
        await download(server.url, RESUMING, logging)

    (line,) = [text for text in caplog.messages if "Response" in text]
    assert str(len(FILE)) in line
    assert "totalAttempts=2" in line


@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS)
async def test_a_pool_of_one_connection_is_enough(chain):
    """The broken connection is closed before another one is asked for."""
    for end in (None, ConnectionResetError):
        async with DownloadServer(*broken_at(5_000, 9_000, end=end)) as server:
            connector = aiohttp.TCPConnector(limit=1)
            async with asyncio.timeout(5.0):
                body, _ = await download(server.url, *chain, connector=connector)

        assert FILE == body


async def test_silence_is_a_break():
    """The limit for it is that of aiohttp, and the pool has one connection."""
    answers = [Answer(stop=6_000, end=HOLD), Answer(end=True)]
    async with DownloadServer(*answers) as server:
        body, log = await download(
            server.url,
            RESUMING,
            connector=aiohttp.TCPConnector(limit=1),
            timeout=ClientTimeout(sock_read=0.5),
        )

    assert FILE == body
    assert ["SocketTimeoutError", None] == [
        part.response_cause_type for part in log.children
    ]


async def test_a_slow_reader_is_no_silence_of_the_server():
    """While the caller does not read, no limit for the server passes."""
    file = bytes(range(256)) * 8_000

    async def read(response):
        body = bytearray()
        while piece := await response.content.read(1 << 16):
            if not body:
                await asyncio.sleep(0.8)
            body += piece
        return bytes(body)

    answers = broken_at(1_000_000, body=file, size=1 << 16)
    async with DownloadServer(*answers) as server:
        body, log = await download(
            server.url, RESUMING, read=read, timeout=ClientTimeout(sock_read=0.5)
        )

    assert file == body
    assert 2 == log.total_attempts


async def test_places_outside_last_to_the_end_of_the_stream():
    """A limit around sees one request in flight all the while, then none."""
    limit = ConcurrencyLimit.fixed(1)
    seen = []

    async def read(response):
        body = bytearray()
        async for piece in response.content.iter_any():
            body += piece
            # The rest may have arrived before it is read.
            if len(body) < 1_700_000:
                seen.append(limit.in_flight)
        return bytes(body)

    limiting = ConcurrencyLimitingClient.new_decorator(limit)
    file = bytes(range(256)) * 8_000
    async with DownloadServer(*broken_at(900_000, 1_800_000, body=file)) as server:
        body, _ = await download(server.url, RETRYING, RESUMING, limiting, read=read)

    assert file == body
    assert {1} == {*seen}
    assert 0 == limit.in_flight


async def test_places_inside_are_of_each_part():
    """They are given back at the break, before the next one is taken."""
    limit = ConcurrencyLimit.fixed(1)
    limiting = ConcurrencyLimitingClient.new_decorator(limit)
    async with DownloadServer(*broken_at(5_000, 9_000)) as server:
        async with asyncio.timeout(5.0):
            body, _ = await download(server.url, limiting, RESUMING)

    assert FILE == body
    assert 0 == limit.in_flight


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
    async with DownloadServer(Answer(stop=5_000), Answer(status=503)) as server:
        got, error, log = await failure(server.url, RESUMING)

    assert FILE[:5_000] == got
    assert isinstance(error, aiohttp.ClientPayloadError)
    assert "cannot resume at byte 5000: the server answers with 503" == str(error)
    assert ("no_retry", False) == (log.stop_reason, log.is_success)
    assert error is log.response_cause
    assert log is RequestLog.of(error)
    assert ["attempt 1: 200 OK", "attempt 2: 503 Status"] == [
        note.split(",")[0].split(": 0.")[0] for note in notes_of(error)
    ]


async def test_a_failure_of_a_part_goes_out_as_it_is():
    """What the server or a decorator further in has refused."""
    breaker = CircuitBreaker("files")
    opening = []

    @client_decorator
    async def open_later(delegate, ctx, request):
        if request.headers.get("Range"):
            opening.append(request)
            raise FailFastError(breaker)
        return await delegate.execute(ctx, request)

    async with DownloadServer(*broken_at(5_000)) as server:
        got, error, log = await failure(server.url, open_later, RESUMING)

    assert FILE[:5_000] == got
    assert isinstance(error, FailFastError)
    assert ("no_retry", error) == (log.stop_reason, log.response_cause)
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


async def test_a_part_that_brings_nothing_is_followed_after_a_wait(monkeypatch):
    """By the default backoff; one byte sets the count back."""
    slept = []
    sleep = asyncio.sleep

    async def note(seconds, *rest):
        slept.append(seconds)
        await sleep(0, *rest)

    answers = [Answer(stop=at) for at in (5_000, 5_000, 5_000, 5_001, 5_001)]
    async with DownloadServer(*answers, Answer(end=True)) as server:
        monkeypatch.setattr("aioretry_smithy._resuming.download.asyncio.sleep", note)
        body, log = await download(server.url, RESUMING)

    assert FILE == body
    waits = [part.delay for part in log.children]
    assert [False, True, True, False, True, False] == [*map(bool, waits)]
    assert [wait for wait in waits if wait] == [wait for wait in slept if wait]
    assert {"backoff"} == {each.delay_source for each in log.children if each.delay}


async def test_a_first_part_that_brings_nothing_is_followed():
    """From the first byte on."""
    async with DownloadServer(*broken_at(0)) as server:
        body, _ = await download(server.url, RESUMING)

    assert FILE == body
    assert [None, "bytes=0-"] == server.ranges


async def test_a_wait_beyond_the_deadline_is_not_begun():
    """The break goes out at once, and the log says why."""
    patient = ResumingClient.new_decorator(max_resumes_without_progress=100)
    async with DownloadServer(Answer(stop=5_000)) as server:
        got, error, log = await failure(
            server.url, patient, timeout=ClientTimeout(total=1.0)
        )

    assert FILE[:5_000] == got
    assert isinstance(error, aiohttp.ClientPayloadError)
    assert "deadline" == log.stop_reason


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
        got, error, log = await failure(server.url, short, RESUMING)

    assert FILE[:5_000] == got
    assert isinstance(error, AttemptTimeoutError)
    assert "no_retry" == log.stop_reason


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
    assert "cannot resume at byte 5000: the parts bring nothing" == str(error)
    assert "backoff_exhausted" == log.stop_reason


LIES = {
    "the whole again": (
        {"status": 200},
        "the server has another version by now, or sends no parts (200)",
    ),
    "not found": ({"status": 404}, "the server answers with 404"),
    "another ETag": (
        {"changes": {"ETag": '"v2"'}},
        "the server has another version by now (ETag)",
    ),
    "a weak ETag": (
        {"changes": {"ETag": 'W/"v1"'}},
        "the server has another version by now (ETag)",
    ),
    "no ETag": ({"changes": {"ETag": None}}, "the part has no ETag"),
    "two ETags": ({"also": ('ETag: "v2"',)}, "the part has several values of ETag"),
    "another type": (
        {"changes": {"Content-Type": "multipart/byteranges"}},
        "the server has another version by now (Content-Type)",
    ),
    "an encoding": (
        {"changes": {"Content-Encoding": "br2"}},
        "the part is encoded",
    ),
    "no range": (
        {"changes": {"Content-Range": None}},
        "the part does not say its range",
    ),
    "two ranges": (
        {"also": ("Content-Range: bytes 0-1/2",)},
        "the part does not say its range",
    ),
    "another unit": (
        {"changes": {"Content-Range": "lines 5000-21999/22000"}},
        "the part does not say its range",
    ),
    "an earlier start": (
        {"changes": {"Content-Range": "bytes 4999-21999/22000"}},
        "the part is of another range",
    ),
    "a later start": (
        {"changes": {"Content-Range": "bytes 5001-21999/22000"}},
        "the part is of another range",
    ),
    "an end before the start": (
        {"changes": {"Content-Range": "bytes 5000-4999/22000"}},
        "the part is of another range",
    ),
    "another length": (
        {"changes": {"Content-Range": "bytes 5000-20999/22000"}},
        "the part has another length than its range",
    ),
    "another total": (
        {"changes": {"Content-Range": "bytes 5000-21999/22001"}},
        "the server has a body of another length by now",
    ),
    "beyond the end": (
        {"changes": {"Content-Range": "bytes 5000-22000/*", "Content-Length": "17001"}},
        "the range of the part goes beyond the end",
    ),
    "no more": (
        {"status": 416, "changes": {"Content-Range": "bytes */22000"}},
        "the server has no more, but it is not the end (416)",
    ),
    "no more of another version": (
        {"status": 416, "changes": {"Content-Range": "bytes */5000"}},
        "the server has a body of another length by now",
    ),
    "no more of another tag": (
        {"status": 416, "changes": {"ETag": '"v2"'}},
        "the server has another version by now (ETag)",
    ),
    "no more, in other words": (
        {"status": 416, "changes": {"Content-Range": "bytes */many"}},
        "there is no telling whether it was the end (416)",
    ),
}


@pytest.mark.parametrize(("lie", "words"), LIES.values(), ids=LIES)
async def test_nothing_is_glued_together_from_two_versions(lie, words):
    """What contradicts an earlier answer ends the stream, and says what it was."""
    first = Answer(stop=5_000, changes={"Content-Type": "text/plain"})
    other = Answer(**{"body": FILE[::-1]} | lie)
    connector = aiohttp.TCPConnector(limit=1)
    async with DownloadServer(first, other) as server:
        got, error, log = await failure(
            server.url, RETRYING, RESUMING, connector=connector
        )

    assert FILE[:5_000] == got
    assert isinstance(error, aiohttp.ClientPayloadError)
    assert f"cannot resume at byte 5000: {words}" == str(error)
    assert "no_retry" == log.stop_reason


async def test_more_bytes_than_the_range_are_refused():
    """A part in chunks could bring any number."""
    changes = {"Content-Range": f"bytes 5000-9999/{len(FILE)}"}
    more = Answer(chunk=3_000, changes=changes)
    async with DownloadServer(Answer(stop=5_000), more) as server:
        got, error, _ = await failure(server.url, RESUMING)

    assert FILE.startswith(got)
    assert "the part has more bytes than its range" in str(error)


async def test_another_time_of_change_is_another_version():
    """Where that is the validator; one that is left out says nothing."""
    other = TIMES | {"Last-Modified": "Sun, 06 Nov 1994 08:49:38 GMT"}
    answers = [Answer(stop=5_000, changes=TIMES), Answer(changes=other)]
    async with DownloadServer(*answers) as server:
        _, error, _ = await failure(server.url, RESUMING)
    without = Answer(changes=TIMES | {"Last-Modified": None}, end=True)
    async with DownloadServer(answers[0], without) as server:
        body, _ = await download(server.url, RESUMING)

    assert "another version by now (Last-Modified)" in str(error)
    assert FILE == body


CANNOT = {
    "no validator": {"changes": {"ETag": None}},
    "a weak one": {"changes": {"ETag": 'W/"v1"'}},
    "a malformed one": {"changes": {"ETag": "v1"}},
    "two of them": {"also": ('ETag: "v2"',)},
    "changed just now": {
        "changes": TIMES | {"Date": "Sun, 06 Nov 1994 08:50:36 GMT"},
    },
    "without a date": {"changes": TIMES | {"Date": None}},
    "no ranges": {"changes": {"Accept-Ranges": "none"}},
    "encoded": {"changes": {"Content-Encoding": "unknown"}},
    "no 200": {"status": 203},
}


@pytest.mark.parametrize("answer", CANNOT.values(), ids=CANNOT)
async def test_what_cannot_be_told_from_others_is_not_continued(answer):
    """The break reaches the caller as without this client."""
    async with DownloadServer(Answer(stop=5_000, **answer)) as server:
        got, error, log = await failure(server.url, RESUMING)

    assert FILE[:5_000] == got
    assert isinstance(error, aiohttp.ClientPayloadError)
    assert (1, None) == (len(server.asked), log.stop_reason)


OWN = {
    "a range": {"headers": {"Range": "bytes=0-"}},
    "an encoding": {"headers": {"accept-encoding": "gzip"}},
    "an upgrade": {"headers": {"Upgrade": "h2c"}},
    "a body": {"data": b"query"},
    "a json body": {"json": {"query": 1}},
}


@pytest.mark.parametrize("options", OWN.values(), ids=OWN)
async def test_requests_of_another_kind_go_out_as_they_are(options):
    """A GET that asks for more than a whole body as it is."""
    with pytest.raises(aiohttp.ClientPayloadError):
        async with DownloadServer(Answer(stop=5_000, status=200)) as server:
            await download(server.url, RESUMING, options=options)

    (asked,) = server.asked
    assert "identity" != asked.headers.get("accept-encoding")


async def test_other_requests_go_out_as_they_are():
    """A POST; all of a session that has an encoding; what the filter leaves out."""

    def is_file(request):
        return request.url.path.startswith("/files/")

    filtered = ResumingClient.new_decorator(request_filter=is_file)
    own = {"Accept-Encoding": "gzip"}
    async with DownloadServer(Answer(end=True)) as server:
        async with connected(None, RESUMING) as session:
            await (await session.post(server.url)).read()
        await download(server.url, RESUMING, headers=own)
        await download(server.url, filtered)
        await download(f"{server.origin}/files/1", filtered)

    encodings = [asked.headers["accept-encoding"] for asked in server.asked]
    assert [False, False, False, True] == [each == "identity" for each in encodings]


async def test_a_filter_that_fails_is_the_callers_mistake():
    """Nothing is sent, and the log has it."""
    error = LookupError("no such setting")

    def fail(request):
        raise error

    failing = ResumingClient.new_decorator(request_filter=fail)
    async with DownloadServer(Answer(end=True)) as server:
        with capture_logs() as logs, pytest.raises(LookupError):
            await download(server.url, failing)

    assert [] == server.asked
    assert str(error) == str(logs[0].response_cause)


async def test_a_call_that_is_buffered_is_not_taken_up():
    """Its own settings say so: a broken body is a failed attempt there."""
    config = RetryConfig(RetryStrategy.failsafe(NOW), buffer_response=True)
    async with DownloadServer(*broken_at(5_000)) as server:
        with request_options(retry=config):
            answers = broken_at(5_000, status=200)
            server.answers = [*answers]
            body, _ = await download(server.url, RETRYING, RESUMING)

    assert FILE == body
    assert [None, None] == server.ranges


async def test_the_options_of_a_block_hold_for_the_parts():
    """Also where the block is over when a part is asked for."""
    config = RetryConfig(RetryStrategy.failsafe(NOW), 2)
    seen = []

    @client_decorator
    async def look(delegate, ctx, request):
        seen.append((ctx.attributes.get("tenant"), ctx.root.options.retry is config))
        return await delegate.execute(ctx, request)

    async with (
        DownloadServer(*broken_at(5_000)) as server,
        connected(None, look, RETRYING, RESUMING) as session,
    ):
        with request_options(retry=config, attributes={"tenant": "a"}):
            response = await session.get(server.url)
        body = await response.read()

    assert FILE == body
    assert [("a", True)] * 2 == seen


async def test_the_caller_may_close_while_a_part_is_asked_for():
    """A reader in another task ends as with aiohttp, and nothing is left open."""
    answers = [Answer(stop=5_000), Answer(wait=asyncio.Event())]
    async with (
        DownloadServer(*answers) as server,
        connected(None, RETRYING, RESUMING) as session,
    ):
        response = await session.get(server.url)
        reading = asyncio.create_task(response.content.readexactly(6_000))
        await server.until(asked=2)
        response.close()
        with pytest.raises(aiohttp.ClientConnectionError, match="closed"):
            await reading
        log = RequestLog.of(response)

        assert not session.connector._acquired
    assert "CancelledError" == log.children[1].response_cause_type
    assert (True, None) == (log.is_complete, log.response_cause)


@pytest.mark.parametrize("at", [0, 1])
async def test_the_caller_may_close_while_a_part_is_read(at):
    """The first, or another one."""
    answers = [*broken_at(5_000)[:at], Answer(stop=9_000, end=HOLD)]
    async with DownloadServer(*answers) as server, connected(None, RESUMING) as session:
        response = await session.get(server.url)
        await response.content.readexactly(9_000)
        reading = asyncio.create_task(response.content.readexactly(1_000))
        await asyncio.sleep(0)
        response.release()
        with pytest.raises(aiohttp.ClientConnectionError, match="closed"):
            await reading

        assert not session.connector._acquired
    log = RequestLog.of(response)
    assert (9_000, None) == (log.response_length, log.response_cause)


async def test_a_closed_response_asks_for_nothing():
    """Neither when it is closed before a break nor after one."""
    async with (
        DownloadServer(Answer(stop=5_000)) as server,
        connected(None, RESUMING) as session,
    ):
        async with session.get(server.url) as response:
            await response.content.readexactly(5_000)
        with pytest.raises(aiohttp.ClientConnectionError):
            await response.content.read()

    assert 1 == len(server.asked)


async def test_a_response_that_is_dropped_frees_its_connection():
    """A pool of one serves the next call then."""
    async with DownloadServer(*broken_at(5_000), Answer(end=True)) as server:
        connector = aiohttp.TCPConnector(limit=1)
        async with connected(None, RESUMING, connector=connector) as session:
            response = await session.get(server.url)
            await response.content.readexactly(5_001)
            del response
            gc.collect()
            async with asyncio.timeout(5.0), session.get(server.url) as response:
                assert FILE == await response.read()


async def test_a_cancelled_reader_may_read_on():
    """The part that it waited for is asked for again."""
    answers = [Answer(stop=5_000), Answer(wait=asyncio.Event()), Answer(end=True)]
    async with (
        DownloadServer(*answers) as server,
        connected(None, RETRYING, RESUMING) as session,
        session.get(server.url) as response,
    ):
        start = await response.content.readexactly(5_000)
        reading = asyncio.create_task(response.content.readany())
        await server.until(asked=2)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        rest = await response.read()

    assert FILE == start + rest
    log = RequestLog.of(response)
    assert [None, "CancelledError", None] == [
        None if each.response_status else each.response_cause_type
        for each in log.children
    ]


async def test_a_closed_session_is_not_resumed():
    """Its error goes out."""
    async with DownloadServer(Answer(stop=5_000, end=HOLD)) as server:
        session = connected(None, RESUMING)
        response = await session.get(server.url)
        await response.content.readexactly(5_000)
        await session.close()
        with pytest.raises(RuntimeError, match="closed"):
            async with asyncio.timeout(5.0):
                await response.content.read()

    assert 1 == len(server.asked)


async def test_a_session_that_is_closed_before_a_part_fails_it():
    """As any call of it would."""
    async with DownloadServer(Answer(stop=5_000)) as server:
        session = connected(None, RESUMING)
        response = await session.get(server.url)
        await response.content.readexactly(5_000)
        await _until(lambda: response.connection.closed)
        await session.close()
        with pytest.raises(RuntimeError, match="Session is closed"):
            await response.content.read()
        with pytest.raises(RuntimeError, match="Session is closed"):
            await response.content.read()


async def test_a_decorator_outside_may_read_the_body():
    """Within the call, which ends as if nothing had broken."""

    @client_decorator
    async def read_all(delegate, ctx, request):
        response = await delegate.execute(ctx, request)
        await response.read()
        return response

    async with DownloadServer(*broken_at(5_000, 9_000)) as server:
        body, log = await download(server.url, RETRYING, RESUMING, read_all)

    assert FILE == body
    assert (200, None, None) == (
        log.response_status,
        log.response_cause,
        log.stop_reason,
    )
    assert 3 == log.total_attempts


async def test_a_first_answer_that_was_not_wanted_stays_so():
    """The log says what it stopped with, whatever comes of the body."""
    always = retrying(Always(), max_total_attempts=1)
    async with DownloadServer(*broken_at(5_000)) as server:
        body, log = await download(server.url, always, RESUMING)

    assert FILE == body
    assert ("max_total_attempts", False) == (log.stop_reason, log.is_success)


async def test_a_decorator_outside_may_make_attempts():
    """The parts of each are attempts of the call too."""

    @client_decorator
    async def derive(delegate, ctx, request):
        return await delegate.execute(ctx.derive(request), request)

    async with DownloadServer(*broken_at(5_000)) as server:
        body, log = await download(server.url, RESUMING, derive)

    assert FILE == body
    assert (200, None) == (log.response_status, log.response_cause)
    assert [None, "ClientPayloadError", None] == [
        part.response_cause_type for part in log.children
    ]


async def test_a_connection_that_broke_in_the_pool_is_no_break():
    """It is replaced without a retrying client, too."""
    first = Answer(body=b"short", end=None, changes={"Connection": "keep-alive"})
    async with (
        DownloadServer(first, Answer(end=True)) as server,
        connected(None, RESUMING) as session,
    ):
        await (await session.get(server.url)).read()
        response = await session.get(server.url)

        assert FILE == await response.read()


CUTS = {
    "whole before the headers are read": (100, 0.0),
    "whole before it is read": (9_000, 0.2),
}


@pytest.mark.parametrize(("after", "pause"), CUTS.values(), ids=CUTS)
async def test_cut_bodies_are_continued(after, pause):
    """What a fault injects in a rehearsal, also where all of it had arrived."""

    async def read(response):
        await asyncio.sleep(0.5)
        return await response.read()

    cut = FaultInjectingClient.new_decorator(
        InjectedFault.cut_body(after=after),
        enabled=lambda ctx, request: ctx.attempt == 1,
    )
    async with DownloadServer(Answer(end=True, pause=pause)) as server:
        body, log = await download(server.url, cut, RETRYING, RESUMING, read=read)

    assert FILE == body
    assert [None, f"bytes={after}-"] == server.ranges
    assert (None, True) == (log.response_cause, log.is_success)


async def test_a_cut_body_may_end_for_good():
    """Where the rest of it is not to be had."""
    cut = FaultInjectingClient.new_decorator(InjectedFault.cut_body(after=100))
    async with DownloadServer(Answer(end=True), Answer(status=404)) as server:
        got, error, log = await failure(server.url, cut, RESUMING)

    assert FILE[:100] == got
    assert "cannot resume at byte 100: the server answers with 404" == str(error)
    assert "no_retry" == log.stop_reason


@pytest.mark.parametrize("status", [204, 304])
async def test_an_answer_without_a_body_is_left_alone(status):
    """It has no stream of its own."""
    nothing = Answer(status=status, body=b"", end=True)
    async with DownloadServer(nothing) as server:
        body, log = await download(server.url, RETRYING, RESUMING)

    assert (b"", status) == (body, log.response_status)


async def test_a_part_goes_the_way_of_the_first_request():
    """The caller's URL is asked again, and may lead elsewhere by now."""
    moved = Answer(status=302, body=b"", end=True, changes={"Location": "/there"})
    answers = [moved, Answer(stop=5_000), moved, Answer(end=True)]
    async with DownloadServer(*answers) as server:
        body, _ = await download(server.url, RETRYING, RESUMING)

    assert FILE == body
    assert ["/file", "/there"] * 2 == [each.head.split()[1] for each in server.asked]


async def test_the_session_may_raise_for_the_status():
    """The 416 at the end is none that the caller asked for."""

    def open_ended(asked):
        if asked.start == len(FILE):
            return Answer(status=416, body=b"", end=True)
        changes = {"Content-Range": f"bytes {asked.start}-{len(FILE) - 1}/*"}
        return Answer(end=True, changes=changes)

    async with DownloadServer(Answer(stop=4_000, chunk=1_000), open_ended) as server:
        body, _ = await download(server.url, RETRYING, RESUMING, raise_for_status=True)

    assert FILE == body


@pytest.mark.parametrize("kind", [TimeoutError, None])
async def test_a_decorator_may_not_heed_that_the_caller_has_closed(kind):
    """The reader ends as with aiohttp all the same, and is not cancelled."""
    waiting = asyncio.Event()

    @client_decorator
    async def stubborn(delegate, ctx, request):
        if not request.headers.get("Range"):
            return await delegate.execute(ctx, request)
        waiting.set()
        try:
            await asyncio.sleep(5.0)
        except asyncio.CancelledError:
            if kind is not None:
                raise kind from None
        return await delegate.execute(ctx, request)

    async def read(response):
        with pytest.raises(aiohttp.ClientConnectionError, match="closed"):
            await response.content.readexactly(6_000)
        return asyncio.current_task().cancelling()

    answers = [Answer(stop=5_000), Answer(end=True)]
    async with (
        DownloadServer(*answers) as server,
        connected(None, stubborn, RESUMING) as session,
    ):
        response = await session.get(server.url)
        reading = asyncio.create_task(read(response))
        await waiting.wait()
        response.close()

        assert 0 == await reading
        assert not session.connector._acquired


async def test_a_reader_that_is_cancelled_beside_a_closing_caller_is_cancelled():
    """Its own cancellation is not taken for the end of the response."""
    answers = [Answer(stop=5_000), Answer(wait=asyncio.Event())]
    async with DownloadServer(*answers) as server, connected(None, RESUMING) as session:
        response = await session.get(server.url)
        reading = asyncio.create_task(response.content.readexactly(6_000))
        await server.until(asked=2)
        response.close()
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading


async def test_what_a_decorator_answers_in_place_of_a_part_is_looked_at():
    """It has made no attempt, and may be no stream."""
    own = FakeResponse(None, status=206)
    changes = {"ETag": TAG, "Content-Range": f"bytes 5000-{len(FILE) - 1}/{len(FILE)}"}
    own.headers = CIMultiDict(changes)

    @client_decorator
    async def bypass(delegate, ctx, request):
        if request.headers.get("Range"):
            return own
        return await plain.get(request.url)

    async with (
        DownloadServer(Answer(stop=5_000)) as server,
        aiohttp.ClientSession() as plain,
    ):
        got, error, _ = await failure(server.url, RETRYING, bypass, RESUMING)

    assert FILE[:5_000] == got
    assert "cannot resume at byte 5000: the part is no stream" == str(error)
    assert ["close"] == own.calls


@pytest.mark.parametrize("strategy", ["round_robin", "peak_ewma"])
async def test_parts_stay_at_the_server_of_the_one_before(strategy):
    """While that is well: another one serves the next part, and those after it."""
    selection = getattr(EndpointSelectionStrategy, strategy)()
    first = [Answer(stop=at) for at in (3_000, 6_000, 9_000)]
    async with DownloadServer(*first) as one, DownloadServer(*first) as other:
        group = EndpointGroup.of(one.origin, other.origin, selection=selection)
        builder = SessionBuilder(group).decorator(RETRYING).decorator(RESUMING)
        async with builder.build() as session, session.get("/file") as response:
            got = await response.content.readexactly(9_000)
            served, spare = (one, other) if one.asked else (other, one)
            assert ([], 3) == (spare.asked, len(served.asked))
            served.stop_listening()
            spare.answers = broken_at(12_000, 15_000)
            got += await response.read()
        log = RequestLog.of(response)

    assert FILE == got
    assert ["bytes=9000-", "bytes=12000-", "bytes=15000-"] == spare.ranges
    assert 3 == len(served.asked)
    assert spare.origin.endswith(log.endpoint)


async def test_the_log_keeps_the_first_and_the_last_parts():
    """And counts all of them."""
    answers = broken_at(*range(100, 100 + 120 * 50, 50))
    async with DownloadServer(*answers) as server:
        body, log = await download(server.url, RETRYING, RESUMING)

    assert FILE == body
    assert (121, 100) == (log.total_attempts, len(log.children))
    numbers = [part.attempt for part in log.children]
    assert [*range(1, 51), *range(72, 122)] == numbers
    assert 121 == log.to_dict()["total_attempts"]
    assert "121 attempts" in log.render()
    assert "and 21 more attempts" in log.render()


async def test_notes_are_on_the_one_error_that_the_caller_gets():
    """As many as there are logs, however many parts there were."""
    answers = [*broken_at(*range(100, 100 + 120 * 50, 50))[:-1], Answer(status=404)]
    async with DownloadServer(*answers) as server:
        _, error, log = await failure(server.url, RESUMING)

    assert 100 == len(notes_of(error))
    assert not any(
        hasattr(part.response_cause, "__notes__") for part in log.children[:-1]
    )


async def test_what_is_here_can_be_read_without_a_wait():
    """As aiohttp's own streams give it."""
    async with (
        DownloadServer(*broken_at(5_000, chunk=1_000)) as server,
        connected(None, RESUMING) as session,
        session.get(server.url) as response,
    ):
        assert b"" == response.content.read_nowait(0)
        here = b""
        while len(here) < 5_000:
            await asyncio.sleep(0.01)
            here += response.content.read_nowait()
        rest = await response.content.read()
        end = response.content.read_nowait()

    assert (5_000, b"") == (len(here), end)
    assert FILE == here + rest


async def test_the_end_can_be_waited_for():
    """By one task while another one reads, or by one alone."""
    async with DownloadServer(*broken_at(5_000)) as server:
        async with (
            connected(None, RESUMING) as session,
            session.get(server.url) as response,
        ):
            await response.content.wait_eof()
            assert FILE == await response.read()
        server.answers = broken_at(5_000)
        async with (
            connected(None, RESUMING) as session,
            session.get(server.url) as response,
        ):
            reading = asyncio.create_task(response.content.read())
            await asyncio.sleep(0)
            await response.content.wait_eof()
            assert FILE == await reading


async def test_only_one_task_may_read():
    """As of aiohttp's streams."""
    async with (
        DownloadServer(Answer(stop=0, end=HOLD)) as server,
        connected(None, RESUMING) as session,
        session.get(server.url) as response,
    ):
        reading = asyncio.create_task(response.content.readany())
        await asyncio.sleep(0.05)
        with pytest.raises(RuntimeError, match="already waiting"):
            await response.content.readany()
        response.close()
        with pytest.raises(aiohttp.ClientConnectionError):
            await reading


async def test_the_connection_of_the_response_is_that_of_the_part():
    """Who asks for it sees the one that is in use."""
    async with (
        DownloadServer(Answer(stop=5_000, end=HOLD)) as server,
        connected(None, RESUMING) as session,
    ):
        async with session.get(server.url) as response:
            connection = response.connection
            peer = connection.transport.get_extra_info("peername")

            assert not connection.closed
            assert "Connection<" in repr(connection)
            assert f"http://{peer[0]}:{peer[1]}" == server.origin
            assert connection.protocol is not None
        assert connection.closed


async def test_nothing_of_a_whole_download_waits_for_the_garbage_collector():
    """Once the caller drops the response, all of it is gone."""
    gc.collect()
    gc.disable()
    try:
        async with (
            DownloadServer(*broken_at(5_000)) as server,
            connected(None, RESUMING) as session,
        ):
            async with session.get(server.url) as response:
                await response.read()
            known = weakref.ref(response)
            del response

            assert known() is None
    finally:
        gc.enable()


async def test_the_standard_chain_may_stand_inside():
    """As the how-to does it."""
    builder = SessionBuilder.standard().decorator(RESUMING)
    async with (
        DownloadServer(*broken_at(5_000)) as server,
        builder.build() as session,
        session.get(server.url) as response,
    ):
        assert FILE == await response.read()
