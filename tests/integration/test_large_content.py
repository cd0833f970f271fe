"""Large, compressed and finely cut bodies, which are looked at or read."""

import asyncio
import gzip
import tracemalloc
import zlib

import pytest
from fake_responses import (
    BODY,
    HEAD,
    WAYS,
    WhileBusy,
    build,
    chunk,
    chunked,
    pieces_of,
    sized,
)

from aioretry_smithy import RequestLog

pytestmark = pytest.mark.slow

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
