"""Parts of a download: how they are asked for, retried and given up."""

import asyncio

import aiohttp
import pytest
from aiohttp import ClientTimeout
from chains import retrying
from download_server import (
    FILE,
    HOLD,
    RESUMING,
    RETRYING,
    Answer,
    DownloadServer,
    download,
    failure,
)

from aioretry_smithy import ResponseTimeoutError, ResumingClient, RetryStrategy

pytestmark = pytest.mark.slow


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
