"""Downloads that break are continued: the caller reads one stream."""

import asyncio

import aiohttp
import pytest
from aiohttp import ClientTimeout
from chains import NOW, Always, connected, pass_on, retrying
from download_server import (
    FILE,
    HOLD,
    TAG,
    Answer,
    DownloadServer,
    broken_at,
    download,
    failure,
)
from fake_responses import FakeResponse
from multidict import CIMultiDict

from aioretry_smithy import (
    ConcurrencyLimit,
    ConcurrencyLimitingClient,
    EndpointGroup,
    EndpointSelectionStrategy,
    LoggingClient,
    RequestLog,
    ResumingClient,
    RetryConfig,
    RetryStrategy,
    SessionBuilder,
    client_decorator,
    request_options,
)
from aioretry_smithy.testing import FaultInjectingClient, InjectedFault

pytestmark = pytest.mark.slow

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


async def test_what_had_arrived_before_a_break_is_kept():
    """A slow reader gets it, and each byte is sent just once."""

    async def read(response):
        await asyncio.sleep(0.1)
        return await response.read()

    async with DownloadServer(*broken_at(12_000, chunk=5_000)) as server:
        body, _ = await download(server.url, RESUMING, read=read)

    assert FILE == body
    assert [None, "bytes=12000-"] == server.ranges


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
    """What a fault injects in a simulated outage, also where all of it had arrived."""

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
