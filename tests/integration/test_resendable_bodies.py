"""Bodies at a real server: identical each time, or refused, and never sent short."""

from __future__ import annotations

import asyncio
import contextlib
import io
from types import SimpleNamespace

import aiohttp
import pytest
from aiohttp import web
from chains import retrying
from multidict import MultiDict

from aioretry_smithy import (
    RequestLog,
    RetryStopReason,
    SessionBuilder,
)

LARGE = bytes(range(256)) * 4096


@pytest.fixture
async def failing(aiohttp_server):
    """A server that keeps what it is sent, and answers 503 twice."""
    seen = SimpleNamespace(bodies=[], types=[], counts=[])

    async def answer(request):
        seen.bodies.append(await request.read())
        seen.types.append(request.headers.get("Content-Type"))
        seen.counts.append(request.headers.get("armeria-retry-count"))
        return web.Response(status=503 if len(seen.bodies) < 3 else 200)

    application = web.Application(client_max_size=1 << 30)
    application.router.add_route("*", "/", answer)
    seen.url = (await aiohttp_server(application)).make_url("/")
    return seen


def urlencoded():
    form = aiohttp.FormData({"a": "1"})
    form.add_field("b", "ü &=")
    return form


def multipart():
    form = aiohttp.FormData()
    form.add_field("a", "1")
    form.add_field("b", b"\x00\x01" * 1000, filename="b.bin")
    form.add_field("c", "text", content_type="text/plain")
    return form


AGAIN = {
    "none": ({"data": None}, b""),
    "nothing": ({}, b""),
    "bytes": ({"data": b"abc"}, b"abc"),
    "large bytes": ({"data": LARGE}, LARGE),
    "bytearray": ({"data": bytearray(b"abc")}, b"abc"),
    "memoryview": ({"data": memoryview(b"abc")}, b"abc"),
    "str": ({"data": "ü"}, "ü".encode()),
    "json": ({"json": {"a": [1, None]}}, b'{"a": [1, null]}'),
    "dict": ({"data": {"a": "1", "b": "ü &="}}, b"a=1&b=%C3%BC+%26%3D"),
    "multidict": ({"data": MultiDict([("a", "1"), ("a", "2")])}, b"a=1&a=2"),
    "pairs": ({"data": [("a", "1"), ("a", "2")]}, b"a=1&a=2"),
    "tuple of pairs": ({"data": (("a", "1"), ("a", "2"))}, b"a=1&a=2"),
    "form": ({"data": urlencoded()}, b"a=1&b=%C3%BC+%26%3D"),
    "compressed": ({"data": b"abc" * 100, "compress": "deflate"}, b"abc" * 100),
    "chunked": ({"data": b"abc", "chunked": True}, b"abc"),
}


@pytest.mark.parametrize(("options", "body"), AGAIN.values(), ids=AGAIN)
async def test_plain_bodies_arrive_each_time(failing, options, body):
    """Attempts 1, 2 and 3 bring the same bytes of the same type."""
    builder = SessionBuilder(failing.url).decorator(retrying(0.0))
    async with builder.build() as session, session.post("/", **options) as response:
        assert 200 == response.status

    assert [body] * 3 == failing.bodies
    assert 1 == len(set(failing.types))
    assert [None, "1", "2"] == failing.counts


async def test_multipart_in_memory_arrives_each_time(failing):
    """Parts that are values are written anew for each attempt."""
    builder = SessionBuilder(failing.url).decorator(retrying(0.0))
    async with builder.build() as session:
        response = await session.post("/", data=multipart())
    assert 200 == response.status
    first, second, third = (
        body.replace(kind.partition("boundary=")[2].encode(), b"boundary")
        for body, kind in zip(failing.bodies, failing.types, strict=True)
    )

    assert first == second == third
    assert b"\x00\x01" * 1000 in first


async def chunks(*parts):
    for part in parts:
        yield part


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "body.txt"
    path.write_bytes(b"abc")
    with path.open("rb") as opened:
        yield opened


def full_reader():
    reader = asyncio.StreamReader()
    reader.feed_data(b"abc")
    reader.feed_eof()
    return reader


def mixed(value):
    form = aiohttp.FormData()
    form.add_field("a", "1")
    form.add_field("b", value, filename="b", content_type="text/plain")
    return form


def parts_of(*values):
    with aiohttp.MultipartWriter() as parts:
        for value in values:
            parts.append(value)
    return parts


REWOUND = {
    "BytesIO": lambda file: io.BytesIO(b"abc"),
    "StringIO": lambda file: io.StringIO("abc"),
    "file": lambda file: file,
    "BytesPayload": lambda file: aiohttp.BytesPayload(b"abc"),
    "JsonPayload": lambda file: aiohttp.JsonPayload("abc"),
    "MultipartWriter": lambda file: parts_of("abc"),
    "dict with a file": lambda file: {"a": "1", "b": file},
    "pairs with a file": lambda file: [("a", "1"), ("b", file)],
    "form with a file": mixed,
    "form with BytesIO": lambda file: mixed(io.BytesIO(b"abc")),
}
ONCE = {
    "async generator": lambda file: chunks(b"a", b"bc"),
    "StreamReader": lambda file: full_reader(),
    "AsyncIterablePayload": lambda file: aiohttp.AsyncIterablePayload(chunks(b"abc")),
}
each_one_shot = pytest.mark.parametrize("make", ONCE.values(), ids=ONCE)


@pytest.mark.parametrize("make", REWOUND.values(), ids=REWOUND)
async def test_what_can_be_rewound_arrives_each_time(failing, file, make):
    """Attempts 1, 2 and 3 bring the same bytes, boundaries included."""
    builder = SessionBuilder(failing.url).decorator(retrying(0.0))
    async with builder.build() as session:
        response = await session.post("/", data=make(file))

    assert 200 == response.status
    assert 3 == len(failing.bodies)
    assert 1 == len(set(failing.bodies))
    assert b"abc" in failing.bodies[0]


@each_one_shot
async def test_what_is_read_is_sent_once(failing, file, make):
    """The call stops after one whole attempt, with that attempt's response."""
    builder = SessionBuilder(failing.url).decorator(retrying(0.0))
    async with builder.build() as session:
        response = await session.post("/", data=make(file))
    log = RequestLog.of(response)

    assert 503 == response.status
    assert RetryStopReason.BODY_NOT_REPLAYABLE == log.stop_reason
    assert 1 == len(failing.bodies) == log.total_attempts
    assert b"abc" in failing.bodies[0]


@each_one_shot
async def test_one_shot_body_of_a_success(aiohttp_server, file, make):
    """Nothing is refused where nothing has to be sent again."""

    async def answer(request):
        return web.Response(body=await request.read())

    application = web.Application()
    application.router.add_post("/", answer)
    server = await aiohttp_server(application)
    builder = SessionBuilder(server.make_url("/")).decorator(retrying(0.0))
    async with builder.build() as session:
        response = await session.post("/", data=make(file))
        assert b"abc" in await response.read()

    assert RequestLog.of(response).stop_reason is None


async def test_early_answer_to_a_large_upload_is_not_completed_short():
    """A server that answers before it has read everything gets no torso later."""
    lengths = []
    hung_up = asyncio.Semaphore(0)

    async def refuse_early(reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        lengths.append(head.lower().partition(b"content-length: ")[2].split()[0])
        writer.write(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            await reader.read()
        writer.close()
        hung_up.release()

    server = await asyncio.start_server(refuse_early, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    size = 8 * 1024 * 1024
    builder = SessionBuilder(url).decorator(retrying(0.0, max_total_attempts=2))
    async with server, builder.build() as session:
        body = io.BytesIO(b"x" * size)
        async with session.post("/", data=body) as response:
            log = RequestLog.of(response)
        for _ in lengths:
            await hung_up.acquire()

    assert RetryStopReason.MAX_TOTAL_ATTEMPTS == log.stop_reason
    assert [str(size).encode()] * 2 == lengths
