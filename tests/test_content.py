"""A body that was looked at reads as if nobody had looked."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import aiohttp
from aiohttp.client_proto import ResponseHandler

from aioretry_smithy import ClientRequestContext, HttpRequest, new_response
from aioretry_smithy._content import fail, peek

REQUEST = HttpRequest("GET", "http://localhost/")


def stream(*chunks: bytes) -> aiohttp.StreamReader:
    loop = asyncio.get_running_loop()
    content = aiohttp.StreamReader(ResponseHandler(loop), 2**16, loop=loop)
    for chunk in chunks:
        content.feed_data(chunk)
    return content


def responding_with(content: object) -> aiohttp.ClientResponse:
    response = new_response(REQUEST, 503)
    response.content = content
    return response


def account(content: aiohttp.StreamReader) -> dict[str, object]:
    names = "_size", "_cursor", "_buffer_offset", "_eof_counter", "total_bytes"
    return {name: getattr(content, name) for name in names}


async def test_stream_keeps_its_account_after_a_look():
    """It goes by it when it tells the server to pause and to go on."""
    content = stream(b"abc", b"def")
    head = await peek(responding_with(content), 2)

    assert b"ab" == head
    assert account(stream(b"abc", b"def")) == account(content)
    assert b"abcdef" == content.read_nowait()


async def test_http_chunk_that_has_not_ended_can_be_looked_at():
    """The head may come long before the end of its chunk."""
    content = stream()
    content.begin_http_chunk_receiving()
    content.feed_data(b"abc")

    assert b"ab" == await peek(responding_with(content), 2)


async def test_response_class_of_somebodys_own_is_read_as_a_whole():
    """All that it promises is ``read()``."""

    async def read() -> bytes:
        return b"abc"

    response = SimpleNamespace(status=200, content=None, read=read)

    assert b"ab" == await peek(response, 2)


async def test_log_says_how_much_of_a_failed_body_came():
    """Nothing, where the stream does not tell."""
    lengths = []
    for content in (stream(b"abc"), None):
        log = ClientRequestContext(REQUEST).log
        fail(log, responding_with(content), aiohttp.ClientPayloadError())
        lengths.append(log.response_length)

    assert [3, 0] == lengths
