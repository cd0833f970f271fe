"""A body that was looked at reads as if nobody had looked."""

from __future__ import annotations

import asyncio
from collections import deque
from types import SimpleNamespace

import aiohttp
import pytest
from aiohttp.client_proto import ResponseHandler
from calls import begin, begin_body, record_of

from aioretry_smithy import HttpRequest, new_response
from aioretry_smithy._bodies.response_content import (
    copy_head,
    read_head,
    record_body_failure,
)
from aioretry_smithy._text.printable import BodyHead

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
    head = await read_head(responding_with(content), 2)

    assert b"ab" == head
    assert account(stream(b"abc", b"def")) == account(content)
    assert b"abcdef" == content.read_nowait()


async def test_http_chunk_that_has_not_ended_can_be_looked_at():
    """The head may come long before the end of its chunk."""
    content = stream()
    content.begin_http_chunk_receiving()
    content.feed_data(b"abc")

    assert b"ab" == await read_head(responding_with(content), 2)


async def test_response_class_of_an_application_is_read_as_a_whole():
    """All that it promises is ``read()``."""

    async def read() -> bytes:
        return b"abc"

    response = SimpleNamespace(status=200, content=None, read=read)

    assert b"ab" == await read_head(response, 2)


async def test_log_says_how_much_of_a_failed_body_came():
    """Nothing, where the stream does not tell."""
    lengths = []
    for content in (stream(b"abc"), None):
        ctx, cause = begin(), aiohttp.ClientPayloadError()
        begin_body(ctx)
        record_body_failure(*record_of(ctx), responding_with(content), cause)
        lengths.append(ctx.log.response_length)

    assert [3, 0] == lengths


async def test_tap_copies_what_is_there_and_what_comes():
    """The stream has all of it, in the same account."""
    content, plain = stream(b"ab", b"c"), stream(b"ab", b"c")
    head = BodyHead("text/plain", 9)

    assert copy_head(responding_with(content), head)
    assert "abc" == head.text()

    content.feed_data(b"de")
    plain.feed_data(b"de")

    assert "abcde" == head.text()
    assert account(plain) == account(content)
    assert b"abcde" == content.read_nowait()


async def test_tap_that_has_enough_copies_nothing_more():
    """The stream has all of what comes, as ever."""
    content = stream()
    head = BodyHead("text/plain", 1)
    copy_head(responding_with(content), head)
    for letter in (b"a", b"b", b"c"):
        content.feed_data(letter * 11)

    assert b"a" * 11 + b"b" == head._data
    assert b"a" * 11 + b"b" * 11 + b"c" * 11 == content.read_nowait()


async def test_tap_of_what_has_ended_leaves_the_stream():
    """Nothing can come."""
    content = stream(b"abc")
    content.feed_eof()
    head = BodyHead("text/plain", 9)

    assert copy_head(responding_with(content), head)
    assert "abc" == head.text()
    assert type(content._buffer) is deque


async def test_tap_that_has_enough_at_once_leaves_the_stream():
    """Nothing more is needed, though more comes."""
    content = stream(b"abc" * 100)
    head = BodyHead("text/plain", 3)

    assert copy_head(responding_with(content), head)
    assert "abc…" == head.text()
    assert type(content._buffer) is deque


async def test_body_that_was_looked_at_can_be_tapped():
    """All of it is in the stream again."""
    content = stream(b"abc", b"def")
    response = responding_with(content)
    await read_head(response, 2)
    head = BodyHead("text/plain", 9)

    assert copy_head(response, head)
    assert "abcdef" == head.text()


async def test_look_at_a_tapped_body_is_not_tapped_again():
    """The bytes that are put back were counted before."""
    content = stream(b"abc")
    head = BodyHead("text/plain", 9)
    response = responding_with(content)
    copy_head(response, head)
    await read_head(response, 2)
    content.feed_data(b"def")

    assert "abcdef" == head.text()
    assert b"abcdef" == content.read_nowait()


async def test_body_that_was_read_is_shown_from_its_copy():
    """``read()`` keeps one."""
    response = new_response(REQUEST, body=b"abc")
    await response.read()
    head = BodyHead("text/plain", 9)

    assert copy_head(response, head)
    assert "abc" == head.text()


@pytest.mark.parametrize("size", [1, 4])
async def test_body_that_was_begun_has_no_beginning(size):
    """The rest of a body does not pass for its beginning."""
    content = stream(b"abc", b"def")
    await content.readexactly(size)
    head = BodyHead("text/plain", 9)

    assert not copy_head(responding_with(content), head)
    assert head.text() is None


async def test_tap_needs_a_stream_of_aiohttp():
    """Not the reader of empty bodies, nor a queue, nor something else."""
    queue = aiohttp.DataQueue(asyncio.get_running_loop())
    queue.feed_data((b"abc", 3))
    head = BodyHead("text/plain", 9)
    socket = responding_with(stream(b"abc"))
    socket.status = 101

    assert not copy_head(responding_with(aiohttp.EMPTY_PAYLOAD), head)
    assert not copy_head(responding_with(queue), head)
    assert not copy_head(responding_with(SimpleNamespace()), head)
    assert not copy_head(socket, head)
    assert head.text() is None
