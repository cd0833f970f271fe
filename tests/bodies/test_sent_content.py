"""What is sent of a body is compared with what went out of it before."""

from __future__ import annotations

import array

import pytest
from fake_responses import Sink

from aioretry_smithy import is_unprocessed
from aioretry_smithy._bodies.replayable_payload import (
    ComparingWriter,
    SentContent,
    SpentBodyError,
)


async def send(
    before: SentContent,
    *chunks: object,
    breaks: bool = False,
    sink: Sink | None = None,
) -> bytes:
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
    first = await send(before, b"abcd", b"", b"efgh")
    second = await send(before, bytearray(b"a"), memoryview(b"bcdefgh"))
    third = await send(before, memoryview(array.array("H", [0x6261, 0x6463])), b"efgh")

    assert first == second == third == b"abcdefgh"


@pytest.mark.parametrize(
    ("chunks", "sent", "words"),
    [
        ([b"abcX", b"efgh"], b"abcX", "differs from what was sent before"),
        ([b"abcdefgX"], b"", "differs from what was sent before"),
        ([b"abcdefghi"], b"", "goes on longer than before"),
        ([b"abcdefgh", b"i"], b"abcdefgh", "goes on longer than before"),
        ([b"abcd"], b"abcd", "ends earlier than before"),
        ([], b"", "ends earlier than before"),
    ],
)
async def test_other_content_is_held_back(chunks, sent, words):
    """From the piece on with which it would be as long as before."""
    before, sink = SentContent("body"), Sink()
    await send(before, b"abcdefgh")
    with pytest.raises(SpentBodyError, match=rf"\Athe body {words}: body\Z") as caught:
        await send(before, *chunks, sink=sink)

    assert sent == sink.sent
    assert caught.value is before.refusal
    assert is_unprocessed(caught.value) is (not sent)


async def test_beginning_is_compared_too():
    """Of a send that broke off; what comes after it is new."""
    before = SentContent("body")
    await send(before, b"abcd", breaks=True)
    await send(before, b"ab", breaks=True)
    with pytest.raises(SpentBodyError, match="differs"):
        await send(before, b"abcX")
    whole = await send(before, b"abcdef")
    with pytest.raises(SpentBodyError, match="longer"):
        await send(before, b"abcdefg")

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
    await send(before, b"abc")
    if is_refused:
        with pytest.raises(SpentBodyError, match="has another length than before"):
            before.expect(then)
    else:
        before.expect(then)


@pytest.mark.parametrize(("limit", "is_refused"), [(2, True), (3, False), (4, True)])
async def test_limit_of_a_server_is_compared(limit, is_refused):
    """After so many bytes it would take the body for whole."""
    before = SentContent("body")
    await send(before, b"abc")
    if is_refused:
        with pytest.raises(SpentBodyError, match="has another length than before"):
            before.expect_at_most(limit)
    else:
        before.expect_at_most(limit)


def test_writer_has_what_the_one_behind_it_has():
    """For payloads of users that ask it for more."""
    sink = Sink()

    assert sink.sent is ComparingWriter(sink, SentContent("body")).sent
