"""Previews of bodies from a real server, whose bodies are the caller's as ever."""

import asyncio
import gzip
import zlib

import aiohttp
import pytest
from aiohttp import web
from chains import connected, retrying
from fake_responses import chunk

from aioretry_smithy import (
    Backoff,
    ContentPreviewingClient,
    RequestLog,
    RetryStrategyWithContent,
)

pytestmark = pytest.mark.slow

MEBIBYTE = b"".join(b"line %6d\n" % n for n in range(87_382))
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
PREVIEWING = ContentPreviewingClient.new_decorator(10)
SOON = Backoff.fixed(0.001)


def sized(body, *headers):
    """Write a response whose body has a length."""
    lines = [b"Content-Length: %d" % len(body), *headers]
    return HEAD + b"\r\n".join(lines) + b"\r\n\r\n" + body


def build(url, *decorators, **options):
    """Build a session; the first decorator is the innermost."""
    return connected(url, *(decorators or [PREVIEWING]), **options)


class WhileBusy(RetryStrategyWithContent):
    """Retries bodies that begin with ``busy``."""

    def should_retry(self, ctx, cause, content):
        return SOON if content is None or content.startswith(b"busy") else None


async def read_in_all_ways(session):
    """Read the same body with each method that a stream has."""
    async with session.get("/") as response:
        yield await response.read()
    async with session.get("/") as response:
        yield (await response.text()).encode()
    async with session.get("/") as response:
        yield b"".join([piece async for piece in response.content.iter_any()])
    async with session.get("/") as response:
        yield b"".join([piece async for piece in response.content.iter_chunked(1000)])
    async with session.get("/") as response:
        yield b"".join([piece async for piece, _ in response.content.iter_chunks()])
    async with session.get("/") as response:
        yield b"".join([line async for line in response.content])
    async with session.get("/") as response:
        begin = await response.content.readexactly(5)
        rest = await response.content.readuntil(b"\n")
        yield begin + rest + await response.content.read()


@pytest.mark.parametrize(
    "answer",
    [
        [sized(MEBIBYTE)],
        [CHUNKED, *map(chunk, [MEBIBYTE[:3], MEBIBYTE[3:500_000], MEBIBYTE[500_000:]]),
         chunk(b"")],
        [sized(gzip.compress(MEBIBYTE), b"Content-Encoding: gzip")],
        [sized(zlib.compress(MEBIBYTE), b"Content-Encoding: deflate")],
        [HEAD, b"\r\n", MEBIBYTE, None],
    ],
    ids=["length", "chunks", "gzip", "deflate", "until closed"],
)  # fmt: skip
async def test_body_is_the_same_however_it_is_read(serve, answer):
    """A megabyte arrives whole and in order, and the preview is its beginning."""
    url = await serve(answer)
    logs = []
    async with build(url) as session:
        async for body in read_in_all_ways(session):
            assert MEBIBYTE == body
        async with session.get("/") as response:
            await response.read()
            logs.append(RequestLog.of(response))

    assert "line      …" == logs[0].response_content_preview
    assert len(MEBIBYTE) == logs[0].response_length


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
    async with build(url) as session, session.get("/") as response:
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
        build(server.make_url("/")) as session,
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
        [CHUNKED, chunk(b"do"), 0.02, chunk(b"ne " + MEBIBYTE), chunk(b"")],
    )
    decorators = [PREVIEWING, retrying(WhileBusy(), buffer_response=buffer_response)]
    if order == "outside":
        decorators.reverse()
    async with build(url, *decorators) as session, session.get("/") as response:
        body = await response.content.read()
        log = RequestLog.of(response)

    previews = [child.response_content_preview for child in log.children]
    assert b"done " + MEBIBYTE == body
    assert ["busy" if order == "inside" else None, "done line …"] == previews
    assert "done line …" == log.response_content_preview


async def test_compressed_bytes_are_no_text(serve):
    """With ``auto_decompress=False`` the caller gets them as they are."""
    packed = gzip.compress(MEBIBYTE)
    url = await serve([sized(packed, b"Content-Encoding: gzip")])
    async with build(url, auto_decompress=False) as session:
        async with session.get("/") as response:
            body = await response.read()
        log = RequestLog.of(response)

    assert packed == body
    assert log.response_content_preview is None


async def test_failure_in_the_body_leaves_what_had_come(serve):
    """That is when one wants to know how it began."""
    url = await serve([CHUNKED, chunk(b"begun"), 0.02, ConnectionResetError])
    async with build(url) as session:
        async with session.get("/") as response:
            with pytest.raises(aiohttp.ClientError):
                await response.read()
        log = RequestLog.of(response)

    assert "begun" == log.response_content_preview
    assert log.response_cause is not None
