"""A body that was looked at reads byte for byte, and chunk for chunk, as before."""

from __future__ import annotations

import asyncio

from aiohttp import StreamReader
from aiohttp.client_proto import ResponseHandler
from hypothesis import given
from hypothesis import strategies as st

from aioretry_smithy import HttpRequest, new_response
from aioretry_smithy._bodies.response_content import buffer, read_head

pieces = st.lists(st.tuples(st.binary(max_size=12), st.booleans()), max_size=8)


def response_of(parts, is_chunked):
    """Make a response whose stream was fed *parts*, some of which end an HTTP chunk."""
    loop = asyncio.get_running_loop()
    response = new_response(HttpRequest("GET", "http://localhost/"))
    content = StreamReader(ResponseHandler(loop), 2**16, loop=loop)
    if is_chunked:
        content.begin_http_chunk_receiving()
    for data, is_end in parts:
        content.feed_data(data)
        if is_chunked and is_end:
            content.end_http_chunk_receiving()
    content.feed_eof()
    response.content = content
    return response


async def ends_of(content):
    """Read to the end; return the bytes and the places where HTTP chunks ended."""
    body, ends = b"", []
    async for data, is_end in content.iter_chunks():
        body += data
        ends += [len(body)] if is_end else []
    return body, ends


@given(
    parts=pieces,
    is_chunked=st.booleans(),
    begun=st.integers(0, 20),
    limits=st.lists(st.integers(1, 100), min_size=1, max_size=3),
    buffered=st.booleans(),
)
async def test_looking_changes_nothing(parts, is_chunked, begun, limits, buffered):
    """Any number of looks, at a body of which some may have been read before."""
    plain = response_of(parts, is_chunked).content
    response = response_of(parts, is_chunked)
    for content in (plain, response.content):
        if begun:
            await content.read(begun)
    rest = b"".join(data for data, _ in parts)[begun:]
    size = response.content._size

    heads = [await read_head(response, limit) for limit in limits]
    if buffered:
        await buffer(response)

    assert [rest[:limit] for limit in limits] == heads
    assert size == response.content._size
    assert await ends_of(plain) == await ends_of(response.content)
    assert response.content.at_eof()
    assert 0 == response.content._size
