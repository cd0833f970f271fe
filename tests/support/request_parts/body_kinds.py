"""Every kind of body that aiohttp accepts, made of the same content."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import threading
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
from aiohttp.base_protocol import BaseProtocol

CHUNK = 1 << 16
OFFSET = 7


@dataclass
class Content:
    """Letters and digits, and a file that holds them; opens things and closes them."""

    data: bytes
    path: Path
    stack: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    @property
    def text(self):
        return self.data.decode()

    def file(self, *, offset=0, **options):
        file = self.stack.enter_context(self.path.open("rb", **options))
        file.seek(offset)
        return file

    def text_file(self):
        return self.stack.enter_context(self.path.open(encoding="ascii"))

    def pipe(self):
        readable, writable = os.pipe()
        thread = threading.Thread(target=self._fill, args=(writable,))
        thread.start()
        self.stack.callback(thread.join)
        return self.stack.enter_context(open(readable, "rb"))  # noqa: PTH123

    def _fill(self, writable):
        with contextlib.suppress(BrokenPipeError), open(writable, "wb") as pipe:  # noqa: PTH123
            pipe.write(self.data)

    async def chunks(self):
        for start in range(0, len(self.data), CHUNK):
            yield self.data[start : start + CHUNK]


class Iterable:
    """Gives a fresh iterator each time."""

    def __init__(self, content):
        self._content = content

    def __aiter__(self):
        return self._content.chunks()


class OwnPayload(aiohttp.Payload):
    """A payload of the user's own, of which nothing is known."""

    def decode(self, encoding="utf-8", errors="strict"):
        return self._value.decode(encoding, errors)

    async def write(self, writer):
        await writer.write(self._value)


def async_payload(content):
    return aiohttp.AsyncIterablePayload(content.chunks())


def form(value):
    data = aiohttp.FormData()
    data.add_field("a", "1")
    data.add_field("b", value, filename="b.txt", content_type="text/plain")
    return data


def parts(*values, boundary="outer"):
    with aiohttp.MultipartWriter(boundary=boundary) as writer:
        for value in values:
            writer.append(value)
    return writer


def stream_reader(content):
    loop = asyncio.get_running_loop()
    reader = aiohttp.StreamReader(BaseProtocol(loop), 1 << 30, loop=loop)
    reader.feed_data(content.data)
    reader.feed_eof()
    return reader


def asyncio_reader(content):
    reader = asyncio.StreamReader(limit=1 << 30)
    reader.feed_data(content.data)
    reader.feed_eof()
    return reader


def at_offset(content):
    stream = io.BytesIO(content.data)
    stream.seek(OFFSET)
    return stream


def data(make):
    return lambda content: {"data": make(content)}


def factory(make):
    return lambda content: {"data": lambda: make(content)}


KINDS = {
    "``None``": data(lambda content: None),
    "``bytes``": data(lambda content: content.data),
    "``bytearray``": data(lambda content: bytearray(content.data)),
    "``memoryview``": data(lambda content: memoryview(content.data)),
    "``str``": data(lambda content: content.text),
    "``json=``": lambda content: {"json": {"a": content.text}},
    "``dict``": data(lambda content: {"a": "1", "b": content.text}),
    "list of pairs": data(lambda content: [("a", "1"), ("a", content.text)]),
    "``FormData``, urlencoded": data(
        lambda content: aiohttp.FormData({"a": "1", "b": content.text})
    ),
    "``FormData``, multipart, text": data(lambda content: form(content.text)),
    "``FormData`` with ``BytesIO``": data(
        lambda content: form(io.BytesIO(content.data))
    ),
    "``FormData`` with an open file": data(lambda content: form(content.file())),
    "``FormData`` with an async generator": data(
        lambda content: form(async_payload(content))
    ),
    "``dict`` with an open file": data(lambda content: {"a": "1", "b": content.file()}),
    "``MultipartWriter`` in memory": data(lambda content: parts("1", content.data)),
    "``MultipartWriter`` with a file": data(lambda content: parts("1", content.file())),
    "``MultipartWriter``, nested, with a file": data(
        lambda content: parts("1", parts("2", content.file(), boundary="inner"))
    ),
    "open file": data(lambda content: content.file()),
    "open file at an offset": data(lambda content: content.file(offset=OFFSET)),
    "open file, unbuffered": data(lambda content: content.file(buffering=0)),
    "open file, text": data(lambda content: content.text_file()),
    "``BytesIO``": data(lambda content: io.BytesIO(content.data)),
    "``BytesIO`` at an offset": data(at_offset),
    "``StringIO``": data(lambda content: io.StringIO(content.text)),
    "async generator": data(lambda content: content.chunks()),
    "async iterable that starts afresh": data(Iterable),
    "``aiohttp.StreamReader``": data(stream_reader),
    "``asyncio.StreamReader``": data(asyncio_reader),
    "pipe": data(lambda content: content.pipe()),
    "``BytesPayload``": data(lambda content: aiohttp.BytesPayload(content.data)),
    "``StringPayload``": data(lambda content: aiohttp.StringPayload(content.text)),
    "``JsonPayload``": data(lambda content: aiohttp.JsonPayload(content.text)),
    "``BytesIOPayload``": data(
        lambda content: aiohttp.BytesIOPayload(io.BytesIO(content.data))
    ),
    "``BufferedReaderPayload``": data(
        lambda content: aiohttp.BufferedReaderPayload(content.file())
    ),
    "``AsyncIterablePayload``": data(async_payload),
    "``Payload`` subclass of your own": data(lambda content: OwnPayload(content.data)),
    "factory of ``bytes``": factory(lambda content: content.data),
    "factory of an open file": factory(lambda content: content.file()),
    "factory of an async generator": factory(lambda content: content.chunks()),
}
"""By the name that the documents use: the arguments of a request."""
