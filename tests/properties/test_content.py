"""Bodies that are looked at stay as they were, and never raise."""

import asyncio
import json

from aiohttp import StreamReader
from aiohttp.client_proto import ResponseHandler
from fake_responses import Connected
from hypothesis import given
from hypothesis import strategies as st

from aioretry_smithy import HttpRequest, new_response
from aioretry_smithy._bodies.response_content import buffer, read_head
from aioretry_smithy._retry.classify import read_error_code

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


LIMIT = 64 * 1024
KINDS = ["application/json", "application/x-amz-json-1.1", "application/xml"]

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
fragments = st.sampled_from(
    '{ } [ ] " : , \\ __type code Error Code < > </ /> & ; <Code> </Code> <!-- --> '
    "<![CDATA[ ]]> <? ?> <!DOCTYPE <!ENTITY SlowDown # null 1e9 \ufeff é".split()
)
garbage = st.one_of(
    st.binary(max_size=200),
    st.lists(fragments, max_size=30).map(lambda parts: "".join(parts).encode()),
    values.map(lambda value: json.dumps(value).encode()),
)


def responding(body, content_type, *, header=None):
    headers = {"Content-Type": content_type}
    if header is not None:
        headers["x-amzn-errortype"] = header
    request = HttpRequest("GET", "http://localhost/")
    return new_response(request, 400, headers=headers, body=body)


@given(
    body=garbage,
    content_type=st.sampled_from(KINDS) | st.text(max_size=20),
    header=st.none() | st.text(max_size=20),
)
async def test_garbage_never_raises(body, content_type, header):
    """The code, if any, is one printable word; the body stays whole."""
    response = responding(body, content_type, header=header)
    code = await read_error_code(response)

    assert code is None or (
        code.isascii() and code.isprintable() and 1 <= len(code.replace(" ", "")) <= 128
    )
    assert body == await response.read()


@given(
    before=st.dictionaries(st.text(), values, max_size=3),
    after=st.dictionaries(st.text(), values, max_size=3),
    name=st.sampled_from(["__type", "code", "Code"]),
    code=st.from_regex(r"[A-Za-z0-9._-]{1,128}", fullmatch=True),
    indent=st.sampled_from([None, 2]),
)
async def test_code_is_found_among_other_members(before, after, name, code, indent):
    """As a parser finds it, whatever else there is."""
    taken = {"__type", "code", "error"}
    others = {
        key: value
        for key, value in (before | after).items()
        if key.lower() not in taken
    }
    cut = len(others) // 2
    items = list(others.items())
    document = dict([*items[:cut], (name, code), *items[cut:]])
    body = json.dumps(document, indent=indent).encode()

    assert code == await read_error_code(responding(body, "application/json"))


@given(
    pieces=st.lists(st.integers(1, 40 * 1024), min_size=1, max_size=8),
    content_type=st.sampled_from(KINDS),
)
async def test_no_more_is_waited_for_than_64_kib(pieces, content_type):
    """The rest of the body may never come."""
    loop = asyncio.get_running_loop()
    response = responding(b"", content_type)
    content = StreamReader(Connected(loop), 2**20, loop=loop)
    response.content = content
    asked = asyncio.create_task(read_error_code(response))
    received = 0
    for size in pieces:
        content.feed_data(b" " * size)
        received += size
        for _ in range(3):
            await asyncio.sleep(0)

        assert (received >= LIMIT) == asked.done()
    content.feed_eof()

    assert None is await asked
    assert received == len(await content.read())
