"""Downloads that are not continued: other versions, other requests."""

from __future__ import annotations

import aiohttp
import pytest
from chains import NOW, connected, retrying
from download_server import FILE, Answer, DownloadServer, broken_at
from resumed_calls import TIMES, download, failure

from aioretry_smithy import (
    ResumingClient,
    RetryConfig,
    RetryStrategy,
    capture_logs,
    client_decorator,
    request_options,
)

RESUMING = ResumingClient.new_decorator()
RETRYING = retrying(RetryStrategy.failsafe(NOW))
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
