"""Bodies go out whole and identical each time, or are refused."""

import asyncio
import io
import os

import aiohttp
import pytest
from aiohttp.client_proto import ResponseHandler
from aiohttp.payload import (
    AsyncIterablePayload,
    BufferedReaderPayload,
    BytesIOPayload,
    Payload,
    StringPayload,
)
from calls import begin, bodies_of, call_of, close_bodies
from fake_responses import Sink
from multidict import MultiDict, MultiDictProxy

from aioretry_smithy import HttpRequest, is_unprocessed
from aioretry_smithy._bodies.replayable_payload import ReplayablePayload, SpentBodyError
from aioretry_smithy._bodies.request_body import is_spent, prepare, spent_body_behind


class Own(Payload):
    """A payload of an application, which may do anything."""

    def __init__(self):
        super().__init__(None, content_type="text/plain")

    def decode(self, encoding="utf-8", errors="strict"):
        return ""

    async def write(self, writer):
        await writer.write(b"own")


class Again:
    """An async iterable that starts afresh each time."""

    async def __aiter__(self):
        yield b"again"


def call(data):
    request = HttpRequest("POST", "http://example.com/", data=data)
    return begin(request), request


async def send(ctx, data):
    """Do with a body what aiohttp does in one attempt."""
    body = prepare(call_of(ctx), data)
    if not isinstance(body, ReplayablePayload):
        return b"untouched"
    sink = Sink()
    assert body.size is None or body.size >= 0
    await body.write(sink)
    await body.close()
    return sink.sent


async def stream():
    yield b"str"
    yield b"eam"


def file_at(path, position):
    path.write_bytes(b"0123456789")
    file = path.open("rb")
    file.seek(position)
    return file


def form(value, **options):
    data = aiohttp.FormData(quote_fields=False)
    data.add_field("a", value, **options)
    return data


def multipart(*parts):
    writer = aiohttp.MultipartWriter(boundary="x")
    for part in parts:
        writer.append(part)
    return writer


UNTOUCHED = [
    None,
    b"abc",
    bytearray(b"abc"),
    memoryview(b"abc"),
    "abc",
    {"a": "b", "c": 1, "d": 1.5, "e": None},
    MultiDict([("a", "1"), ("a", "2")]),
    MultiDictProxy(MultiDict(a="1")),
    [],
    [("a", "b"), ["c", "d"]],
    (("a", "b"),),
    aiohttp.FormData({"a": "b"}),
    aiohttp.FormData(),
]


def name(value):
    return type(value).__name__


@pytest.mark.parametrize("data", UNTOUCHED, ids=name)
async def test_what_needs_no_care_is_passed_on_untouched(data):
    """Mocks that compare arguments see the caller's own object, each time."""
    ctx, request = call(data)

    assert data is prepare(call_of(ctx), data)
    assert data is prepare(call_of(ctx.derive(request)), data)
    assert () == bodies_of(ctx)
    assert not is_spent(call_of(ctx), request)


@pytest.mark.parametrize("data", [object(), iter([b"a"]), {b"a"}], ids=name)
async def test_what_aiohttp_refuses_is_left_for_it_to_refuse(data):
    """The error is then aiohttp's own."""
    ctx, _ = call(data)

    assert data is prepare(call_of(ctx), data)


def text_file(path):
    path.write_text("äöü", encoding="utf-8")
    return path.open(encoding="utf-8")


def at(file, position):
    file.seek(position)
    return file


REWOUND = {
    "file": lambda path: (file_at(path, 0), b"0123456789"),
    "file at offset": lambda path: (file_at(path, 4), b"456789"),
    "raw file": lambda path: (file_at(path, 4).detach(), b"456789"),
    "text file": lambda path: (text_file(path), "äöü".encode()),
    "BytesIO": lambda path: (io.BytesIO(b"abc"), b"abc"),
    "BytesIO at offset": lambda path: (at(io.BytesIO(b"abc"), 1), b"bc"),
    "StringIO at offset": lambda path: (at(io.StringIO("abc"), 1), b"bc"),
    "BytesPayload": lambda path: (aiohttp.BytesPayload(b"abc"), b"abc"),
    "StringPayload": lambda path: (StringPayload("abc"), b"abc"),
    "JsonPayload": lambda path: (aiohttp.JsonPayload({"a": 1}), b'{"a": 1}'),
    "BytesIOPayload": lambda path: (BytesIOPayload(io.BytesIO(b"abc")), b"abc"),
    "BufferedReaderPayload": lambda path: (
        BufferedReaderPayload(file_at(path, 4)),
        b"456789",
    ),
    "dict": lambda path: ({"a": io.BytesIO(b"abc"), "b": "c"}, None),
    "list": lambda path: ([("a", file_at(path, 4))], None),
    "form": lambda path: (form(io.BytesIO(b"abc"), filename="f"), None),
    "form in memory": lambda path: (form(b"abc", filename="f"), None),
    "multipart": lambda path: (multipart(b"abc", file_at(path, 4)), None),
    "nested multipart": lambda path: (multipart(multipart(io.BytesIO(b"a"))), None),
}


@pytest.mark.parametrize("make", REWOUND.values(), ids=REWOUND)
async def test_files_are_sent_alike_from_the_position_that_they_had(tmp_path, make):
    """Three attempts, three times the same bytes."""
    data, expected = make(tmp_path / "file")
    ctx, request = call(data)
    first, second, third = [await send(ctx, data) for _ in range(3)]
    spent = is_spent(call_of(ctx), request)
    await close_bodies(ctx)
    await asyncio.sleep(0.1)

    assert first == second == third
    assert b"" != first
    assert expected in {None, first}
    assert not spent


def pipe():
    reading, writing = os.pipe()
    os.write(writing, b"pipe")
    os.close(writing)
    return os.fdopen(reading, "rb")


READ_ONCE = {
    "async generator": stream,
    "async iterable": Again,
    "pipe": pipe,
    "AsyncIterablePayload": lambda: AsyncIterablePayload(Again()),
    "own payload": Own,
    "multipart": lambda: multipart(b"abc", AsyncIterablePayload(stream())),
    "form": lambda: form(stream(), filename="f"),
}


@pytest.mark.parametrize("make", READ_ONCE.values(), ids=READ_ONCE)
async def test_what_is_read_goes_out_once(make):
    """Before it was read it may still go out; afterwards it is refused."""
    data = make()
    ctx, request = call(data)
    prepare(call_of(ctx), data)
    spent = [is_spent(call_of(ctx), request)]
    sent = await send(ctx, data)
    spent.append(is_spent(call_of(ctx), request))
    with pytest.raises(SpentBodyError) as caught:
        prepare(call_of(ctx.derive(request)), data)
    await close_bodies(ctx)
    if isinstance(data, io.IOBase):
        data.close()  # aiohttp closes no file that it could not rewind

    message = f"the body was read by an earlier attempt: {type(data).__name__}"
    assert sent
    assert [False, True] == spent
    assert message == str(caught.value)


async def test_stream_readers_are_no_fresh_iterables():
    """Each of their iterators reads on where the last one stopped."""
    loop = asyncio.get_running_loop()
    reader = aiohttp.StreamReader(ResponseHandler(loop), 2**16, loop=loop)
    ctx, _ = call(reader)

    assert isinstance(prepare(call_of(ctx), reader), ReplayablePayload)


async def test_reading_a_spent_body_again_is_refused():
    """A middleware of aiohttp's, for one, may try to send the payload again."""
    data = stream()
    ctx, _ = call(data)
    body = prepare(call_of(ctx), data)
    await body.write(Sink())

    assert body.consumed
    with pytest.raises(SpentBodyError, match="read before: async_generator") as caught:
        await body.write(Sink())
    assert not is_unprocessed(caught.value)


async def test_failure_is_that_of_a_spent_body_where_it_came_from_it():
    """Another body may have been sent in the place of the spent one."""
    data = stream()
    ctx, _ = call(data)
    await send(ctx, data)
    with pytest.raises(SpentBodyError) as caught:
        await send(ctx, data)
    failure = ConnectionResetError()
    found = [spent_body_behind(call_of(ctx), failure)]
    failure.__cause__ = caught.value
    found.append(spent_body_behind(call_of(ctx), failure))

    assert [None, caught.value] == found


class Tape(io.BytesIO):
    """What is behind a drive."""

    def seekable(self):
        return False


class Drive(io.BufferedReader):
    """A file that tells its position and cannot seek."""

    def seekable(self):
        return False


async def test_file_that_a_middleware_has_read_as_text_is_spent():
    """No server has seen it."""
    data = Drive(Tape(b"abc"))
    ctx, request = call(data)
    body = prepare(call_of(ctx), data)
    assert "abc" == body.decode()

    assert is_spent(call_of(ctx), request)
    with pytest.raises(SpentBodyError, match="read before: Drive") as caught:
        await body.write(Sink())
    assert is_unprocessed(caught.value)


async def test_file_that_cannot_seek_is_spent_though_it_tells_its_position():
    """To read on in the middle would send half a body."""
    data = Drive(Tape(b"abc"))
    ctx, request = call(data)
    body = prepare(call_of(ctx), data)
    await body.write(Sink())

    assert body.consumed
    assert is_spent(call_of(ctx), request)


async def test_file_that_lies_about_seeking_is_spent(tmp_path):
    """It says that it can, and when it is asked to, it cannot."""

    class Liar(io.BufferedReader):
        def tell(self):
            raise OSError

    with Liar(file_at(tmp_path / "file", 0).detach()) as data:
        ctx, request = call(data)
        sent = await send(ctx, data)

        assert (b"0123456789", True) == (sent, is_spent(call_of(ctx), request))


async def test_no_more_is_sent_than_was_announced(tmp_path):
    """The length in the header is kept also when the file is longer."""
    sink = Sink()
    with file_at(tmp_path / "file", 0) as data:
        ctx, _ = call(data)
        await prepare(call_of(ctx), data).write_with_length(sink, 4)

    assert b"0123" == sink.sent


async def test_large_file_is_read_in_pieces(tmp_path):
    """It is never in memory as a whole."""
    sizes = []

    class Watching(Sink):
        async def write(self, chunk):
            sizes.append(len(chunk))

    (tmp_path / "file").write_bytes(bytes(1_000_000))
    with (tmp_path / "file").open("rb") as data:
        ctx, _ = call(data)
        await prepare(call_of(ctx), data).write(Watching())

    assert 1_000_000 == sum(sizes)
    assert 500_000 > max(sizes)


async def test_questions_of_middlewares_go_on_to_the_payload():
    """With the encoding and the ways with errors that they asked for."""
    asked = []

    class Asked(Own):
        def decode(self, *arguments):
            asked.append(arguments)
            return "text"

        async def as_bytes(self, *arguments):
            asked.append(arguments)
            return b"bytes"

    data = Asked()
    ctx, _ = call(data)
    body = prepare(call_of(ctx), data)
    texts = body.decode(), body.decode("ascii", "ignore")
    contents = await body.as_bytes(), await body.as_bytes("ascii", "ignore")

    assert (("text",) * 2, (b"bytes",) * 2) == (texts, contents)
    assert [("utf-8", "strict"), ("ascii", "ignore")] * 2 == asked


@pytest.mark.parametrize("attempts", [1, 3])
async def test_file_is_closed_when_the_call_ends_if_aiohttp_would_close_it(
    tmp_path, attempts
):
    """Not after the first attempt, and not by us where aiohttp never saw it."""
    data = file_at(tmp_path / "file", 0)
    ctx, _ = call(data)
    for _ in range(attempts):
        await send(ctx, data)
    still_open = not data.closed
    await close_bodies(ctx)
    await asyncio.sleep(1.0)  # virtual time stands still while the thread closes it

    assert still_open
    assert data.closed
    assert () == bodies_of(ctx)


async def test_file_that_was_never_sent_stays_open(tmp_path):
    """An open circuit is no reason to close the caller's file."""
    data = file_at(tmp_path / "file", 0)
    ctx, _ = call(data)
    prepare(call_of(ctx), data)
    await close_bodies(ctx)

    assert not data.closed
    data.close()


async def test_payload_of_the_callers_own_is_given_back_as_it_was():
    """Used in a second call, it holds the same file as before."""
    data = BytesIOPayload(io.BytesIO(b"abc"))
    file = data._value
    ctx, _ = call(data)
    await send(ctx, data)
    await close_bodies(ctx)

    assert file is data._value


async def test_headers_and_size_are_those_that_aiohttp_would_send(tmp_path):
    """The replayable payload has the headers and the size of the one inside it."""
    (tmp_path / "a.json").write_bytes(b"{}")
    data = (tmp_path / "a.json").open("rb")
    ctx, _ = call(data)
    body = prepare(call_of(ctx), data)
    alone = aiohttp.get_payload(data, disposition=None)

    assert alone.headers == body.headers
    assert alone.size == body.size == 2
    assert alone.autoclose == body.autoclose
    assert "{}" == body.decode()
    assert b"{}" == await body.as_bytes()
    data.close()


async def test_calls_are_apart():
    """The guard is the call's: what comes of one body in two calls is the caller's."""
    data = stream()
    ctx, _ = call(data)
    other, _ = call(data)
    await send(ctx, data)

    assert isinstance(prepare(call_of(other), data), ReplayablePayload)


async def test_payload_of_an_application_may_follow_a_redirect():
    """Within one attempt it is asked itself, as in aiohttp alone."""
    data = Own()
    ctx, request = call(data)
    body = prepare(call_of(ctx), data)
    sink = Sink()
    await body.write(sink)
    consumed = body.consumed
    await body.write(sink)

    assert not consumed
    assert b"ownown" == sink.sent
    assert is_spent(call_of(ctx), request)


async def test_stream_that_aiohttp_can_call_is_no_factory():
    """The objects of its old decorator take a writer."""
    with pytest.warns(DeprecationWarning, match="deprecated"):

        @aiohttp.streamer
        async def write(writer):
            await writer.write(b"a")

    data = write()
    ctx, _ = call(data)

    assert isinstance(prepare(call_of(ctx), data), ReplayablePayload)
