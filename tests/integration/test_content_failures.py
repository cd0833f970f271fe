"""Bodies that are looked at: those that fail, large ones, previews, breakers."""

import asyncio
import gzip
import json
import tracemalloc
import zlib

import aiohttp
import pytest
from aiohttp import web
from chains import connected, pass_on, retrying
from fake_responses import (
    BODY,
    HEAD,
    SOON,
    WAYS,
    WhileBusy,
    assert_nothing_is_held,
    build,
    chunk,
    chunked,
    pieces_of,
    sized,
)

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitBreakerRuleWithContent,
    ContentPreviewingClient,
    EventCount,
    RequestLog,
    RetryStopReason,
    RetryStrategy,
)

pytestmark = pytest.mark.slow


FAILURES = {
    "stalls": ([HEAD + b"Content-Length: 9\r\n\r\nbusy", 3600.0], TimeoutError),
    "silent": ([HEAD + b"Content-Length: 9\r\n\r\n", 3600.0], TimeoutError),
    "truncated": (
        [HEAD + b"Content-Length: 9\r\n\r\nbu", 0.01, None],
        aiohttp.ClientPayloadError,
    ),
    "truncated chunk": (
        [HEAD + b"Transfer-Encoding: chunked\r\n\r\n9\r\nbu", 0.01, None],
        aiohttp.ClientPayloadError,
    ),
    "bad gzip": (
        [HEAD + b"Content-Encoding: gzip\r\nContent-Length: 9\r\n\r\n", b"not gzip."],
        aiohttp.ClientPayloadError,
    ),
}


@pytest.mark.parametrize("strategy", [WhileBusy, RetryStrategy.failsafe])
@pytest.mark.parametrize("failure", FAILURES)
async def test_failure_of_the_body_is_a_failed_attempt(serve, failure, strategy):
    """It is retried, and no content is shown; the log keeps the status that came."""
    answer, kind = FAILURES[failure]
    url = await serve(answer, [sized(b"done")])
    buffer, strategy = strategy is not WhileBusy, strategy()
    async with build(url, strategy, limit=0.5, buffer=buffer) as session:
        response = await session.get("/")
        first, last = RequestLog.of(response).children

        assert b"done" == await response.read()
        assert isinstance(first.response_cause, kind)
        assert 200 == first.response_status == last.response_status
        assert first.is_complete
        assert last.response_cause is None
        assert_nothing_is_held(session)

    if not buffer:
        (_, cause, _), _ = strategy.seen
        assert [(200, cause, None), (200, None, b"done")] == strategy.seen
        assert repr(cause) == repr(first.response_cause)


async def test_last_failure_of_the_body_is_raised(serve):
    """The caller gets the error from the call, with its log, not later."""
    url = await serve(FAILURES["truncated"][0])
    async with build(
        url, RetryStrategy.failsafe(SOON), attempts=2, buffer=True
    ) as session:
        with pytest.raises(aiohttp.ClientPayloadError) as caught:
            await session.get("/")
        log = RequestLog.of(caught.value)

        assert RetryStopReason.MAX_TOTAL_ATTEMPTS == log.stop_reason
        assert 2 == log.total_attempts
        assert caught.value is log.response_cause
        assert_nothing_is_held(session)


async def test_failure_after_what_was_looked_at_is_the_callers(serve):
    """A part that the strategy did not want to see fails as in aiohttp."""
    url = await serve([HEAD + b"Content-Length: 9\r\n\r\nfine", 0.05, None])
    async with build(url, WhileBusy(4)) as session:
        response = await session.get("/")
        with pytest.raises(aiohttp.ClientPayloadError) as caught:
            await response.read()

    assert caught.value is RequestLog.of(response).response_cause


async def test_order_whose_answer_was_cut_is_not_repeated(serve):
    """The server has done the work: ``failsafe`` does not send a POST again for it."""
    url = await serve(FAILURES["truncated"][0], [sized(b"done")])
    async with build(url, RetryStrategy.failsafe(SOON), buffer=True) as session:
        with pytest.raises(aiohttp.ClientPayloadError) as caught:
            await session.post("/")

    assert RetryStopReason.NO_RETRY == RequestLog.of(caught.value).stop_reason


SAFELY_SOON = RetryStrategy.failsafe(Backoff.fixed(0.01))
RULE = CircuitBreakerRuleWithContent(
    on_content=lambda content: content is not None and content.startswith(b"busy"),
    max_content_length=64,
)


each_chain = pytest.mark.parametrize(
    ("inside", "outside"), [((), ()), ((pass_on,), ()), ((), (pass_on,))]
)


@pytest.fixture
def breaker():
    return CircuitBreaker("orders", failure_rate_threshold=1)


@each_chain
@pytest.mark.parametrize("failure", FAILURES)
async def test_a_body_that_fails_is_a_failed_attempt(
    serve, breaker, failure, inside, outside
):
    """It is counted and retried, and the log keeps the status that came."""
    answer, kind = FAILURES[failure]
    url = await serve(answer, [sized(b"done and more")])
    guarded = CircuitBreakerClient.new_decorator(breaker, RULE)
    limited = retrying(SAFELY_SOON, attempt_timeout=0.5)
    async with connected(url, *inside, guarded, *outside, limited) as session:
        response = await session.get("/")
        first, last = RequestLog.of(response).children

        assert b"done and more" == await response.read()
        assert isinstance(first.response_cause, kind)
        assert 200 == first.response_status == last.response_status
        assert EventCount(success=1, failure=1) == breaker.event_count
        assert not session.connector._acquired


async def test_a_pool_of_one_connection_is_given_back(serve, breaker):
    """Also where the call is cancelled while a rule waits for the body."""
    url = await serve(FAILURES["stalls"][0], [sized(b"done")])
    guarded = CircuitBreakerClient.new_decorator(breaker, RULE)
    pool = aiohttp.TCPConnector(limit=1)
    async with asyncio.timeout(20), connected(url, guarded, connector=pool) as session:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await session.get("/")
        async with session.get("/") as response:
            assert b"done" == await response.read()

    assert EventCount(success=1, failure=0) == breaker.event_count


MEBIBYTE = 1024 * 1024
GZIP = b"Content-Encoding: gzip"


async def test_rest_of_a_large_body_waits_for_the_caller(serve):
    """Looking at the beginning does not draw the rest into memory."""
    url = await serve([sized(b"x" * (32 * MEBIBYTE))])
    async with build(url, WhileBusy(MEBIBYTE)) as session:
        response = await session.get("/")
        await asyncio.sleep(0.2)
        arrived = response.content.total_bytes
        length = 0
        async for data in response.content.iter_any():
            length += len(data)

    assert arrived < 4 * MEBIBYTE
    assert 32 * MEBIBYTE == length


async def test_bomb_is_looked_at_in_bounded_memory(serve):
    """A kilobyte that unpacks to a megabyte, many times over, is not unpacked."""
    packer = zlib.compressobj(1, wbits=31)
    zeros = bytes(MEBIBYTE)
    packed = [
        packer.compress(zeros) + packer.flush(zlib.Z_SYNC_FLUSH) for _ in range(300)
    ]
    paced = [part for piece in packed for part in (chunk(piece), 0.002)]
    head = HEAD + GZIP + b"\r\nTransfer-Encoding: chunked\r\n\r\n"
    url = await serve([head, *paced, chunk(packer.flush()), b"0\r\n\r\n"])
    strategy = WhileBusy(64 * 1024)
    tracemalloc.start()
    try:
        async with build(url, strategy) as session, session.get("/"):
            _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert [bytes(64 * 1024)] == [seen[2] for seen in strategy.seen]
    assert peak < 16 * MEBIBYTE


@pytest.mark.parametrize("way", ["read", "iter_any", "iter_chunked"])
async def test_large_compressed_body(serve, way):
    """A body that aiohttp unpacks piece by piece goes on where looking stopped."""
    body = BODY * 40
    url = await serve([sized(gzip.compress(body, 1), GZIP)])
    strategy = WhileBusy(MEBIBYTE)
    async with build(url, strategy) as session:
        response = await session.get("/")

        assert [body[:MEBIBYTE]] == [seen[2] for seen in strategy.seen]
        assert body == await WAYS[way](response)
        assert len(body) == RequestLog.of(response).response_length


@pytest.mark.parametrize("limit", [20_000, 50_000])
async def test_tiny_chunks(serve, limit):
    """A body that comes byte by byte, of which aiohttp keeps only so many, is whole."""
    body = b"0123456789" * 4000
    url = await serve([chunked(pieces_of(body, 1))])
    strategy = WhileBusy(limit)
    async with build(url, strategy) as session:
        response = await session.get("/")

        assert [body[:limit]] == [seen[2] for seen in strategy.seen]
        assert body == await response.read()


CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
PREVIEWING = ContentPreviewingClient.new_decorator(10)


def previewed(url, *decorators, **options):
    """Build a session; the first decorator is the innermost."""
    return connected(url, *(decorators or [PREVIEWING]), **options)


@pytest.mark.parametrize(
    "answer",
    [
        [sized(BODY)],
        [CHUNKED, *map(chunk, [BODY[:3], BODY[3:100_000], BODY[100_000:]]),
         chunk(b"")],
        [sized(gzip.compress(BODY), b"Content-Encoding: gzip")],
        [sized(zlib.compress(BODY), b"Content-Encoding: deflate")],
        [HEAD, b"\r\n", BODY, None],
    ],
    ids=["length", "chunks", "gzip", "deflate", "until closed"],
)  # fmt: skip
async def test_body_is_the_same_however_it_is_read(serve, answer):
    """It arrives whole and in order, and the preview is its beginning."""
    url = await serve(answer)
    logs = []
    async with previewed(url) as session:
        for way, read in WAYS.items():
            async with session.get("/") as response:
                body = await read(response)
            text = {"text": BODY.decode(), "json": json.loads(BODY)}
            assert text.get(way, BODY) == body
        async with session.get("/") as response:
            await response.read()
            logs.append(RequestLog.of(response))

    assert '["000000",…' == logs[0].response_content_preview
    assert len(BODY) == logs[0].response_length


async def test_preview_grows_as_the_body_drips_in(serve):
    """It shows what has come, whether or not it was read; nothing is waited for."""
    url = await serve(
        [
            CHUNKED,
            0.05,
            chunk(b"\xc3"),
            0.05,
            chunk(b"\xa4b"),
            0.05,
            chunk(b"cdefghijk"),
        ]
    )
    seen = []
    async with previewed(url) as session, session.get("/") as response:
        log = RequestLog.of(response)
        seen.append(log.response_content_preview)
        async for _ in response.content.iter_any():
            seen.append(log.response_content_preview)
            if len(seen) == 4:
                break

    assert [None, None, "äb", "äbcdefghij…"] == seen


async def test_endless_stream_is_not_delayed(serving):
    """The first event is there at once, and its preview with it."""
    is_read = asyncio.Event()

    async def handle(request):
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b"data: 1\n\n")
        await is_read.wait()
        await response.write(b"data: 2\n\n")
        await asyncio.sleep(60)

    server = await serving(handle)
    async with (
        asyncio.timeout(5),
        previewed(server.make_url("/")) as session,
        session.get("/") as response,
    ):
        first = await response.content.readline()
        preview = RequestLog.of(response).response_content_preview
        is_read.set()
        await response.content.readline()
        second = await response.content.readline()

    assert [b"data: 1\n", "data: 1\n\n", b"data: 2\n"] == [first, preview, second]


@pytest.mark.parametrize("order", ["inside", "outside"])
@pytest.mark.parametrize("buffer_response", [False, True])
async def test_who_looks_at_bodies_and_previews_do_not_mind_each_other(
    serve, order, buffer_response
):
    """A strategy sees the beginning, a buffer holds all, and the caller reads all."""
    url = await serve(
        [CHUNKED, chunk(b"bu"), 0.02, chunk(b"sy"), chunk(b"")],
        [CHUNKED, chunk(b"do"), 0.02, chunk(b"ne " + BODY), chunk(b"")],
    )
    decorators = [PREVIEWING, retrying(WhileBusy(), buffer_response=buffer_response)]
    if order == "outside":
        decorators.reverse()
    async with previewed(url, *decorators) as session, session.get("/") as response:
        body = await response.content.read()
        log = RequestLog.of(response)

    previews = [child.response_content_preview for child in log.children]
    assert b"done " + BODY == body
    assert ["busy" if order == "inside" else None, 'done ["000…'] == previews
    assert 'done ["000…' == log.response_content_preview


async def test_compressed_bytes_are_no_text(serve):
    """With ``auto_decompress=False`` the caller gets them as they are."""
    packed = gzip.compress(BODY)
    url = await serve([sized(packed, b"Content-Encoding: gzip")])
    async with previewed(url, auto_decompress=False) as session:
        async with session.get("/") as response:
            body = await response.read()
        log = RequestLog.of(response)

    assert packed == body
    assert log.response_content_preview is None


async def test_failure_in_the_body_leaves_what_had_come(serve):
    """That is when one wants to know how it began."""
    url = await serve([CHUNKED, chunk(b"begun"), 0.02, ConnectionResetError])
    async with previewed(url) as session:
        async with session.get("/") as response:
            with pytest.raises(aiohttp.ClientError):
                await response.read()
        log = RequestLog.of(response)

    assert "begun" == log.response_content_preview
    assert log.response_cause is not None
