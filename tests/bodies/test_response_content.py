"""Bodies of responses: made, looked at, read in time, given up."""

import asyncio
import gc
import weakref
from collections import deque
from types import SimpleNamespace
from unittest.mock import MagicMock

import aiohttp
import pytest
from aiohttp.client_proto import ResponseHandler
from calls import REQUEST, begin, begin_body, call_of
from chains import raises_exactly
from fake_responses import FakeResponse, FakeStream, unending
from multidict import CIMultiDict
from yarl import URL

from aioretry_smithy import HttpRequest, new_response
from aioretry_smithy._bodies.response_content import (
    buffer,
    copy_head,
    discard,
    keep,
    read_head,
    read_head_of,
    read_head_within,
    read_whole,
    record_body_failure,
    whole_body,
)
from aioretry_smithy._text.printable import BodyHead

ASKED = HttpRequest("GET", "http://example.com/a?b=1", headers={"A": "1"})


async def test_new_response_reads_like_any_other():
    """Body, text, JSON and headers are there, and again when asked again."""
    headers = {"Content-Type": "application/json; charset=latin-1"}
    response = new_response(ASKED, 201, headers=headers, body=b'"\xfc"')
    async with response:
        assert b'"\xfc"' == await response.read()
        assert '"ü"' == await response.text()
        assert "ü" == await response.json()

    assert (201, "Created", True) == (response.status, response.reason, response.ok)
    assert "application/json" == response.content_type
    assert headers == dict(response.headers)
    assert (aiohttp.HttpVersion11, ()) == (response.version, response.history)
    assert ((b"Content-Type", headers["Content-Type"].encode()),) == (
        response.raw_headers
    )


async def test_new_response_is_a_stream():
    """The body comes in chunks too, to its end."""
    response = new_response(ASKED, body=b"x" * 100_000)
    chunks = [chunk async for chunk in response.content.iter_chunked(30_000)]

    assert [30_000, 30_000, 30_000, 10_000] == [len(chunk) for chunk in chunks]
    assert response.content.at_eof()


@pytest.mark.parametrize("credentials", ["u:p", "u", ":p"])
async def test_new_response_knows_its_request(credentials):
    """URL, method and headers are those of the request, without credentials."""
    url = f"http://{credentials}@example.com/"
    request = HttpRequest("post", url, headers={"A": "1"})
    response = new_response(request)

    assert URL("http://example.com/") == response.url == response.request_info.url
    assert ("POST", "POST") == (response.method, response.request_info.method)
    assert {"A": "1"} == dict(response.request_info.headers)
    assert "example.com" in repr(response)


async def test_new_response_has_cookies():
    """Each ``Set-Cookie`` is parsed, and headers may be repeated."""
    headers = [("Set-Cookie", "a=1; Path=/"), ("set-cookie", "b=2"), ("Via", "x")]
    response = new_response(ASKED, headers=headers)

    assert {"a": "1", "b": "2"} == {k: v.value for k, v in response.cookies.items()}
    assert 2 == len(response.headers.getall("Set-Cookie"))


async def test_new_response_raises_for_status():
    """The usual method raises the usual error."""
    response = new_response(ASKED, 404, headers=CIMultiDict(A="1"))

    with pytest.raises(aiohttp.ClientResponseError) as caught:
        response.raise_for_status()
    assert (404, "Not Found") == (caught.value.status, caught.value.message)
    assert {"A": "1"} == dict(caught.value.headers)


@pytest.mark.parametrize("status", [0, 99, 218, 299, 600, 999])
async def test_new_response_takes_any_status(status):
    """A status that nobody registered has no reason, and is no error."""
    response = new_response(ASKED, status)

    assert (status, "") == (response.status, response.reason)
    assert (status < 400) is response.ok


async def test_new_response_to_what_is_no_url():
    """A fallback may answer a request that aiohttp would have refused."""
    response = new_response(HttpRequest("GET", "http://h:99999/"))

    assert b"" == await response.read()


HEADERS = "a mapping of str, or pairs of str"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"status": "200"}, "status: '200' (expected: an integer)"),
        ({"status": True}, "status: True (expected: an integer)"),
        ({"status": None}, "status: None (expected: an integer)"),
        ({"body": "text"}, "body: 'text' (expected: bytes)"),
        ({"request": 200}, "request: 200 (expected: an HttpRequest)"),
        ({"headers": [1]}, f"headers: [1] (expected: {HEADERS})"),
        ({"headers": {"Age": 3}}, f"headers: {{'Age': 3}} (expected: {HEADERS})"),
        ({"body": None}, "body: None (expected: bytes)"),
    ],
)
async def test_new_response_refuses_bad_arguments(arguments, message):
    """A bad argument is named where the response is made."""
    with raises_exactly(message):
        new_response(**{"request": ASKED, **arguments})


async def test_new_response_is_freed_at_once():
    """Nothing refers to it in a circle, so nothing waits for the garbage collector."""
    gc.disable()
    try:
        response = new_response(ASKED, body=b"abc")
        await response.read()
        freed = weakref.ref(response)
        del response

        assert freed() is None
    finally:
        gc.enable()


def stream(*chunks):
    loop = asyncio.get_running_loop()
    content = aiohttp.StreamReader(ResponseHandler(loop), 2**16, loop=loop)
    for chunk in chunks:
        content.feed_data(chunk)
    return content


def responding_with(content):
    response = new_response(REQUEST, 503)
    response.content = content
    return response


def account(content):
    names = "_size", "_cursor", "_buffer_offset", "_eof_counter", "total_bytes"
    return {name: getattr(content, name) for name in names}


@pytest.mark.parametrize("size", [2, 6])
async def test_stream_keeps_its_account_after_a_look(size):
    """It goes by it when it tells the server to pause and to go on."""
    content = stream(b"abc", b"def")
    head = await read_head(responding_with(content), size)

    assert b"abcdef"[:size] == head
    assert account(stream(b"abc", b"def")) == account(content)
    assert b"abcdef" == content.read_nowait()


async def test_look_that_may_have_enough_is_taken_at_each_double_size():
    """Not at each of the chunks, which it joins each time."""
    looks = []
    response = responding_with(stream(*[b"x"] * 20))
    head = await read_head_within(
        response, 20, seconds=1.0, enough=lambda head: looks.append(len(head))
    )

    assert [1, 2, 4, 8, 16] == looks
    assert 20 == len(head)


async def test_whole_body_is_one_that_has_ended_and_is_in_memory():
    """Read or not, of a class of aiohttp's or not."""
    ended, begun, failed = (new_response(ASKED, body=b"abc") for _ in range(3))
    await begun.content.read(1)
    failed.content.set_exception(aiohttp.ClientPayloadError())
    read = new_response(ASKED, body=b"abc")
    await read.read()
    own = SimpleNamespace(content=SimpleNamespace())
    bodies = [whole_body(each) for each in (ended, begun, failed, read, own)]

    assert [b"abc", None, None, b"abc", None] == bodies
    assert whole_body(responding_with(stream(b"abc"))) is None


async def test_body_that_was_read_is_not_put_back_into_its_stream():
    """It is there in the response."""
    response = new_response(ASKED, body=b"abc")
    await response.read()
    await buffer(response)

    assert (b"", b"abc") == (await response.content.read(), await response.read())


async def test_what_is_another_protocol_is_not_read():
    """Its bytes are no body."""
    async with asyncio.timeout(1.0):
        await buffer(unending(ASKED, 101))


async def test_http_chunk_that_has_not_ended_can_be_looked_at():
    """The head may come long before the end of its chunk."""
    content = stream()
    content.begin_http_chunk_receiving()
    content.feed_data(b"abc")

    assert b"ab" == await read_head(responding_with(content), 2)


async def test_response_class_of_an_application_is_read_as_a_whole():
    """All that it promises is ``read()``."""

    async def read():
        return b"abc"

    response = SimpleNamespace(status=200, content=None, read=read)

    assert b"ab" == await read_head(response, 2)


async def test_log_says_how_much_of_a_failed_body_came():
    """Nothing, where the stream does not tell."""
    lengths = []
    for content in (stream(b"abc"), None):
        ctx, cause = begin(), aiohttp.ClientPayloadError()
        begin_body(ctx)
        record_body_failure(ctx, responding_with(content), cause)
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


async def test_the_beginning_is_read_and_left():
    """Up to a number of bytes; the response can be read as before."""
    response = new_response(REQUEST, body=b"fine and more")

    assert b"fine" == await read_head_of(begin(), response, 4)
    assert b"fine and more" == await response.read()


@pytest.mark.parametrize("was_final", [False, True])
async def test_a_body_that_fails_settles_nothing(was_final):
    """Where its record was open, another outcome may follow; and else none may."""
    call, response = call_of(begin()), unending(REQUEST)
    failure = aiohttp.ClientPayloadError("broke off")
    response.content.set_exception(failure)
    call.is_final = was_final

    with pytest.raises(aiohttp.ClientPayloadError) as caught:
        await read_whole(call, response)

    assert failure is caught.value
    assert was_final == call.is_final
    assert response.closed
    assert isinstance(call.outcome.cause, aiohttp.ClientPayloadError)


async def test_released_twice():
    """Giving up and closing in any order raises nothing."""
    response = new_response(ASKED, body=b"abc")
    await discard(response)
    await discard(response)
    response.release()
    response.close()


@pytest.mark.parametrize(
    ("stream", "given", "reused"),
    [
        ({}, {}, True),
        ({"chunks": 64, "size": 1024}, {}, True),
        ({"chunks": 64, "size": 1024}, {"length": 65_536}, True),
        ({"chunks": 65, "size": 1024}, {}, True),
        ({"chunks": 66, "size": 1024}, {}, False),
        ({"chunks": 1, "size": 1}, {"length": 65_537}, False),
        ({"chunks": 9, "size": 1, "interval": 0.01}, {}, True),
        ({"chunks": 11, "size": 1, "interval": 0.01}, {}, False),
        ({"chunks": 1, "size": 1, "interval": 3600.0}, {}, False),
        ({"chunks": 1, "error": aiohttp.ClientPayloadError()}, {}, False),
        ({"chunks": 1, "error": ConnectionResetError()}, {}, False),
        ({"chunks": 1, "size": 1}, {"status": 101}, False),
    ],
    ids=[
        "at its end",
        "small",
        "small, declared",
        "small, and a last piece",
        "large",
        "large, declared",
        "slow",
        "too slow",
        "silent",
        "broken",
        "reset",
        "another protocol",
    ],
)
async def test_rest_of_a_body_is_read_if_it_is_worth_it(stream, given, reused):
    """At most 64 KiB and 0.1 s are spent on keeping a connection."""
    response = FakeResponse(FakeStream(**stream), **given)

    await discard(response)

    assert (["release", "close"] if reused else ["close"]) == response.calls
    assert asyncio.get_running_loop().time() <= 0.1


@pytest.mark.parametrize(("length", "waited"), [(65_536, 0.05), (65_537, 0.0)])
async def test_answer_that_may_be_the_outcome_is_read_if_it_is_small(length, waited):
    """Up to 64 KiB; the rest of a larger one is not waited for."""
    headers = {"Content-Length": f"{length}"}
    response = unending(ASKED, 503, headers=headers)
    response._connection = MagicMock()
    loop = asyncio.get_running_loop()
    loop.call_later(0.05, response.content.feed_data, bytes(length))
    await keep(response)

    assert waited == loop.time()
    assert response.closed


async def test_response_without_a_connection_is_given_up_at_once():
    """There is none to use again, however much of the body is missing."""
    response = FakeResponse(FakeStream(1, interval=0.05))
    response.connection = None
    await discard(response)

    assert ["release", "close"] == response.calls
    assert 0.0 == asyncio.get_running_loop().time()


async def test_cancellation_while_giving_up_closes():
    """A caller cancelled while reading the rest leaves no connection behind."""
    response = FakeResponse(FakeStream(1, interval=0.05))
    task = asyncio.create_task(discard(response))
    await asyncio.sleep(0.01)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert ["close"] == response.calls
