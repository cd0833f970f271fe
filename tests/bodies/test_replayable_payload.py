"""Payloads for several attempts: equal bytes, files that are awaited, factories."""

import array
import gc
import io
import weakref

import aiohttp
import pytest
from calls import begin, call_of, close_bodies
from fake_responses import Sink

from aioretry_smithy import HttpRequest, is_unprocessed
from aioretry_smithy._bodies.replayable_payload import (
    ComparingWriter,
    SentContent,
    SpentBodyError,
)
from aioretry_smithy._bodies.request_body import is_spent, prepare


async def send_chunks(before, *chunks, breaks=False, sink=None):
    """Send chunks; return what came of them."""
    sink = sink or Sink()
    writer = ComparingWriter(sink, before)
    try:
        for chunk in chunks:
            await writer.write(chunk)
        if not breaks:
            writer.end()
    finally:
        writer.note()
    return sink.sent


async def test_equal_content_may_come_in_other_pieces():
    """Of bytes, and of what holds them."""
    before = SentContent("body")
    first = await send_chunks(before, b"abcd", b"", b"efgh")
    second = await send_chunks(before, bytearray(b"a"), memoryview(b"bcdefgh"))
    third = await send_chunks(
        before, memoryview(array.array("H", [0x6261, 0x6463])), b"efgh"
    )

    assert first == second == third == b"abcdefgh"


@pytest.mark.parametrize(
    ("chunks", "sent", "words"),
    [
        ([b"abcX", b"efgh"], b"abcX", "differs from what was sent before"),
        ([b"abcdefgX"], b"", "differs from what was sent before"),
        ([b"abcdefghi"], b"", "goes on longer than before"),
        ([b"abcdefgh", b"i"], b"abcdefgh", "goes on longer than before"),
        ([b"a"], b"a", "ends earlier than before"),
        ([], b"", "ends earlier than before"),
    ],
)
async def test_other_content_is_held_back(chunks, sent, words):
    """From the piece on with which it would be as long as before."""
    before, sink = SentContent("body"), Sink()
    await send_chunks(before, b"abcdefgh")
    with pytest.raises(SpentBodyError, match=rf"\Athe body {words}: body\Z") as caught:
        await send_chunks(before, *chunks, sink=sink)

    assert sent == sink.sent
    assert caught.value is before.refusal
    assert is_unprocessed(caught.value) is (not sent)


async def test_beginning_is_compared_too():
    """Of a send that broke off; what comes after it is new."""
    before = SentContent("body")
    await send_chunks(before, b"abcd", breaks=True)
    await send_chunks(before, b"ab", breaks=True)
    with pytest.raises(SpentBodyError, match="differs"):
        await send_chunks(before, b"abcX")
    whole = await send_chunks(before, b"abc", b"def")
    with pytest.raises(SpentBodyError, match="longer"):
        await send_chunks(before, b"abcdefg")

    assert b"abcdef" == whole


@pytest.mark.parametrize(
    ("first", "then", "is_refused"),
    [(3, 3, False), (3, 4, True), (None, 3, False), (3, None, False), (None, 4, True)],
)
async def test_length_is_compared_before_anything_is_sent(first, then, is_refused):
    """Where both are known; unknown ones show in what is sent."""
    before = SentContent("body")
    before.expect(5)  # refused by a limit, it was not sent
    before.expect(first)
    await send_chunks(before, b"abc")
    if is_refused:
        with pytest.raises(SpentBodyError, match="has another length than before"):
            before.expect(then)
    else:
        before.expect(then)


@pytest.mark.parametrize(
    ("first", "then", "is_refused"), [(None, 5, False), (5, 5, False), (5, 4, True)]
)
async def test_length_of_a_beginning_is_no_length(first, then, is_refused):
    """That which was announced is compared, if there was one."""
    before = SentContent("body")
    before.expect(first)
    await send_chunks(before, b"abc", breaks=True)
    if is_refused:
        with pytest.raises(SpentBodyError, match="has another length than before"):
            before.expect(then)
    else:
        before.expect(then)


@pytest.mark.parametrize(("limit", "is_refused"), [(2, True), (3, False), (4, True)])
async def test_limit_of_a_server_is_compared(limit, is_refused):
    """After so many bytes it would take the body for whole."""
    before = SentContent("body")
    await send_chunks(before, b"abc")
    if is_refused:
        with pytest.raises(SpentBodyError, match="has another length than before"):
            before.expect_at_most(limit)
    else:
        before.expect_at_most(limit)


def test_writer_has_what_the_one_behind_it_has():
    """For payloads of users that ask it for more."""
    sink = Sink()

    assert sink.sent is ComparingWriter(sink, SentContent("body")).sent


class AsyncFile:
    """A file whose methods are awaited, of some library."""

    def __init__(self, content, **failures):
        self._file = io.BytesIO(content)
        self._failures = failures

    def _fail(self, name):
        if name in self._failures:
            raise self._failures[name]

    async def tell(self):
        self._fail("tell")
        return self._file.tell()

    async def seek(self, position):
        self._fail("seek")
        self._file.seek(position)

    async def __aiter__(self):
        for line in self._file:
            yield line


def call(data):
    request = HttpRequest("POST", "http://example.com/", data=data)
    return begin(request), request


async def send(ctx, data):
    """Do with a body what aiohttp does in one attempt."""
    sink = Sink()
    await prepare(call_of(ctx), data).write(sink)
    return sink.sent


async def test_async_file_is_rewound():
    """To the position that it had when it was first sent."""
    data = AsyncFile(b"a\nb\n")
    ctx, request = call(data)
    sent = [await send(ctx, data) for _ in range(3)]
    await close_bodies(ctx)

    assert [b"a\nb\n"] * 3 == sent
    assert not is_spent(call_of(ctx), request)


async def test_async_file_that_is_looked_at_is_sent_as_it_was_seen():
    """What aiohttp has kept is not read again."""
    data = AsyncFile(b"a\nb\n")
    ctx, _ = call(data)
    body = prepare(call_of(ctx), data)
    seen = await body.as_bytes()
    data._file = io.BytesIO(b"else")
    sent = [await send(ctx, data) for _ in range(2)]

    assert [seen, seen] == sent


@pytest.mark.parametrize("method", ["tell", "seek"])
async def test_async_file_that_cannot_be_rewound_goes_out_once(method):
    """A pipe, for instance."""
    data = AsyncFile(b"a\nb\n", **{method: OSError(29, "Illegal seek")})
    ctx, request = call(data)
    sent = await send(ctx, data)
    with pytest.raises(SpentBodyError, match="was read"):
        await send(ctx, data)

    assert b"a\nb\n" == sent
    assert is_spent(call_of(ctx), request)


async def test_failure_of_an_async_file_is_its_own():
    """One that has nothing to do with its position."""
    data = AsyncFile(b"a", tell=ValueError("closed file"))
    ctx, _ = call(data)

    with pytest.raises(ValueError, match="closed file"):
        await send(ctx, data)


async def test_async_file_that_was_never_sent_has_nothing_to_let_go_of():
    """An open circuit has refused its request."""
    data = AsyncFile(b"a")
    ctx, request = call(data)
    prepare(call_of(ctx), data)
    await close_bodies(ctx)

    assert 0 == await data.tell()
    assert not is_spent(call_of(ctx), request)


async def stream():
    yield b"str"
    yield b"eam"


async def test_factory_is_asked_for_each_attempt():
    """The value that it returns is treated like any other body."""
    made = []

    def factory():
        made.append(io.BytesIO(b"abc"))
        return made[-1]

    ctx, request = call(factory)
    sent = [await send(ctx, factory) for _ in range(3)]
    await close_bodies(ctx)

    assert [b"abc"] * 3 == sent
    assert 3 == len(made)
    assert not is_spent(call_of(ctx), request)


async def test_async_generator_function_is_a_factory():
    """Without the parentheses a stream can be sent again."""
    ctx, _ = call(stream)

    assert [b"stream"] * 2 == [await send(ctx, stream) for _ in range(2)]


async def test_factory_of_plain_values_is_held_to_them():
    """What it makes later has to equal what it made at first."""
    values = iter([b"abc", "abc", b"abd"])

    def factory():
        return next(values)

    ctx, _ = call(factory)
    sent = [await send(ctx, factory) for _ in range(2)]
    with pytest.raises(SpentBodyError, match="differs from what was sent before"):
        await send(ctx, factory)

    assert [b"abc"] * 2 == sent


async def test_factory_of_nothing_is_held_to_that():
    """A request without a body, and then one with a body, are not the same."""
    values = iter([None, b"a"])

    def factory():
        return next(values)

    ctx, _ = call(factory)
    assert prepare(call_of(ctx), factory) is None
    with pytest.raises(SpentBodyError, match="has another length") as caught:
        prepare(call_of(ctx), factory)
    assert is_unprocessed(caught.value)


async def test_factory_of_no_bytes_is_held_to_that():
    """They are the same as no body."""
    values = iter([None, b"", None, b"a"])

    def factory():
        return next(values)

    ctx, _ = call(factory)
    first = prepare(call_of(ctx), factory)
    second = await send(ctx, factory)
    third = prepare(call_of(ctx), factory)
    with pytest.raises(SpentBodyError, match="has another length than before"):
        prepare(call_of(ctx), factory)

    assert (None, b"", None) == (first, second, third)


async def test_factory_that_makes_nothing_later_is_found_out():
    """The other way round."""
    values = iter([b"a", None])

    def factory():
        return next(values)

    ctx, _ = call(factory)
    await send(ctx, factory)

    with pytest.raises(
        SpentBodyError, match="has another length than before: .*factory"
    ):
        prepare(call_of(ctx), factory)


async def test_factory_of_what_aiohttp_refuses_is_left_for_it_to_refuse():
    """The error is then aiohttp's own."""
    data = object()
    ctx, _ = call(None)

    assert data is prepare(call_of(ctx), lambda: data)


async def test_factory_that_returns_the_same_stream_is_found_out():
    """It was read by the first attempt."""
    data = stream()
    ctx, _ = call(lambda: data)
    await send(ctx, lambda: data)

    with pytest.raises(SpentBodyError):
        prepare(call_of(ctx), lambda: data)


async def test_factory_of_what_was_sent_as_it_is_is_found_out():
    """A decorator may put one in the place of the caller's own stream."""
    data = stream()
    ctx, _ = call(data)
    await send(ctx, data)

    with pytest.raises(SpentBodyError, match="read by an earlier attempt"):
        prepare(call_of(ctx), lambda: data)


async def test_factory_may_follow_another_body():
    """A decorator may put it in the place of the caller's own."""
    data = stream()
    ctx, _ = call(data)
    await send(ctx, data)

    assert b"abc" == await send(ctx, lambda: io.BytesIO(b"abc"))


async def test_factory_that_leaves_out_a_part_is_found_out():
    """A multipart inside the multipart."""

    def multipart(*parts):
        writer = aiohttp.MultipartWriter()
        for part in parts:
            writer.append(part)
        return writer

    whole = (multipart(multipart("a"), "b") for _ in range(2))
    products = iter([*whole, multipart("b")])

    def factory():
        return next(products)

    ctx, _ = call(factory)
    first, second = [await send(ctx, factory) for _ in range(2)]
    assert first == second
    with pytest.raises(SpentBodyError, match="has another length than before"):
        prepare(call_of(ctx), factory)


async def test_texts_of_earlier_attempts_are_not_kept():
    """They may be long, and bytes likewise."""

    class Many(str):
        pass

    made = []

    def factory():
        many = Many("abc")
        made.append(weakref.ref(many))
        return many

    ctx, _ = call(factory)
    sent = [await send(ctx, factory) for _ in range(2)]
    gc.collect()

    assert [b"abc"] * 2 == sent
    assert [None] * 2 == [each() for each in made]
