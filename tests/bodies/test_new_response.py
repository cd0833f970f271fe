"""Responses that were made here, are watched to their end, or are given up."""

from __future__ import annotations

import asyncio
import gc
import weakref
from types import SimpleNamespace

import aiohttp
import pytest
from multidict import CIMultiDict
from yarl import URL

from aioretry_smithy import ClientRequestContext, HttpRequest, new_response
from aioretry_smithy._bodies.drain import discard
from aioretry_smithy._call.recording import record_response

REQUEST = HttpRequest("GET", "http://example.com/a?b=1", headers={"A": "1"})


async def test_new_response_reads_like_any_other():
    """Body, text, JSON and headers are there, and again when asked again."""
    headers = {"Content-Type": "application/json; charset=latin-1"}
    response = new_response(REQUEST, 201, headers=headers, body=b'"\xfc"')
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
    response = new_response(REQUEST, body=b"x" * 100_000)
    chunks = [chunk async for chunk in response.content.iter_chunked(30_000)]

    assert [30_000, 30_000, 30_000, 10_000] == [len(chunk) for chunk in chunks]
    assert response.content.at_eof()


async def test_new_response_may_be_empty():
    """Without a body reading gives nothing instead of waiting."""
    response = new_response(REQUEST)

    assert b"" == await response.read()
    assert 200 == response.status
    assert response.connection is None


async def test_new_response_knows_its_request():
    """URL, method and headers are those of the request, without credentials."""
    request = HttpRequest("post", "http://u:p@example.com/", headers={"A": "1"})
    response = new_response(request)

    assert URL("http://example.com/") == response.url == response.request_info.url
    assert ("POST", "POST") == (response.method, response.request_info.method)
    assert {"A": "1"} == dict(response.request_info.headers)
    assert "example.com" in repr(response)


async def test_new_response_has_cookies():
    """Each ``Set-Cookie`` is parsed, and headers may be repeated."""
    headers = [("Set-Cookie", "a=1; Path=/"), ("set-cookie", "b=2"), ("Via", "x")]
    response = new_response(REQUEST, headers=headers)

    assert {"a": "1", "b": "2"} == {k: v.value for k, v in response.cookies.items()}
    assert 2 == len(response.headers.getall("Set-Cookie"))


async def test_new_response_raises_for_status():
    """The usual method raises the usual error."""
    response = new_response(REQUEST, 404, headers=CIMultiDict(A="1"))

    with pytest.raises(aiohttp.ClientResponseError) as caught:
        response.raise_for_status()
    assert (404, "Not Found") == (caught.value.status, caught.value.message)
    assert {"A": "1"} == dict(caught.value.headers)


@pytest.mark.parametrize("status", [0, 99, 218, 299, 600, 999])
async def test_new_response_takes_any_status(status):
    """A status that nobody registered has no reason, and is no error."""
    response = new_response(REQUEST, status)

    assert (status, "") == (response.status, response.reason)
    assert (status < 400) is response.ok


async def test_new_response_to_what_is_no_url():
    """A fallback may answer a request that aiohttp would have refused."""
    response = new_response(HttpRequest("GET", "http://h:99999/"))

    assert b"" == await response.read()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"status": "200"}, "status: '200' (expected: an integer)"),
        ({"status": True}, "status: True (expected: an integer)"),
        ({"status": None}, "status: None (expected: an integer)"),
        ({"body": "text"}, "body: 'text' (expected: bytes)"),
        ({"body": None}, "body: None (expected: bytes)"),
    ],
)
async def test_new_response_refuses_bad_arguments(arguments, message):
    """A bad argument is named where the response is made."""
    with pytest.raises(ValueError) as caught:
        new_response(REQUEST, **arguments)

    assert message == str(caught.value)


async def test_new_response_is_freed_at_once():
    """Nothing refers to it in a circle, so nothing waits for the garbage collector."""
    gc.disable()
    try:
        response = new_response(REQUEST, body=b"abc")
        await response.read()
        freed = weakref.ref(response)
        del response

        assert freed() is None
    finally:
        gc.enable()


async def test_released_twice():
    """Giving up and closing in any order raises nothing."""
    response = new_response(REQUEST, body=b"abc")
    await discard(response)
    await discard(response)
    response.release()
    response.close()


async def test_response_that_is_whole_is_complete_at_once():
    """A response without a connection has nothing more to come."""
    log = ClientRequestContext(REQUEST).log
    record_response(log, new_response(REQUEST, body=b"abc"))

    assert log.is_complete
    assert (200, 3) == (log.response_status, log.response_length)


async def test_response_is_recorded_once():
    """Every client on the way may show a response to the log."""
    log = ClientRequestContext(REQUEST).log
    response = new_response(REQUEST)
    record_response(log, response)
    await asyncio.sleep(1.0)
    record_response(log, response)
    assert 0.0 == log.duration
    record_response(log, new_response(REQUEST, 201))

    assert (1.0, 201) == (log.duration, log.response_status)


class FakeTimer:
    def __init__(self, fired=False):
        self.fired = fired

    def assert_timeout(self):
        if self.fired:
            raise TimeoutError


class FakeConnection:
    def __init__(self):
        self.callbacks = []

    def add_callback(self, callback):
        self.callbacks.append(callback)

    def give_back(self):
        for callback in self.callbacks:
            callback()


class FakeStream:
    """A body of many chunks that come at intervals."""

    def __init__(self, chunks=0, size=0, interval=0.0, error=None):
        self.chunks, self.size, self.interval = chunks, size, interval
        self.error = error
        self._timer = FakeTimer()
        self.total_bytes = 0

    def at_eof(self):
        return not self.chunks

    is_eof = at_eof

    def exception(self):
        return self.error

    async def readany(self):
        await asyncio.sleep(self.interval)
        if self.error is not None:
            raise self.error
        self.chunks -= 1
        self.total_bytes += self.size
        return b""


class FakeResponse:
    """The part of a response that is asked, without a network."""

    def __init__(self, stream, *, status=200, length=None):
        self.content, self.status, self.content_length = stream, status, length
        self.connection = FakeConnection()
        self.headers, self.reason, self.history = {}, "OK", ()
        self.request_info = SimpleNamespace(headers={})
        self.calls = []

    def release(self):
        self.calls.append("release")

    def close(self):
        self.calls.append("close")


@pytest.mark.parametrize(
    ("response", "reused"),
    [
        (FakeResponse(FakeStream(0)), True),
        (FakeResponse(FakeStream(64, 1024)), True),
        (FakeResponse(FakeStream(64, 1024), length=65_536), True),
        (FakeResponse(FakeStream(66, 1024)), False),
        (FakeResponse(FakeStream(1, 1), length=65_537), False),
        (FakeResponse(FakeStream(9, 1, interval=0.01)), True),
        (FakeResponse(FakeStream(11, 1, interval=0.01)), False),
        (FakeResponse(FakeStream(1, 1, interval=3600.0)), False),
        (FakeResponse(FakeStream(1, error=aiohttp.ClientPayloadError())), False),
        (FakeResponse(FakeStream(1, error=ConnectionResetError())), False),
        (FakeResponse(FakeStream(1, 1), status=101), False),
    ],
    ids=[
        "at its end",
        "small",
        "small, declared",
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
async def test_rest_of_a_body_is_read_if_it_is_worth_it(response, reused):
    """At most 64 KiB and 0.1 s are spent on keeping a connection."""
    await discard(response)

    assert (["release", "close"] if reused else ["close"]) == response.calls
    assert asyncio.get_running_loop().time() <= 0.1


async def test_cancellation_while_giving_up_closes():
    """Who is cancelled while reading the rest leaves no connection behind."""
    response = FakeResponse(FakeStream(1, interval=0.05))
    task = asyncio.create_task(discard(response))
    await asyncio.sleep(0.01)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert ["close"] == response.calls


@pytest.mark.parametrize(
    ("stream", "fired", "cause"),
    [
        (FakeStream(), False, type(None)),
        (FakeStream(), True, type(None)),
        (FakeStream(1), True, TimeoutError),
        (FakeStream(1, error=aiohttp.ClientPayloadError()), False, None),
        (FakeStream(1, error=aiohttp.SocketTimeoutError()), False, None),
        (FakeStream(1, error=aiohttp.ClientConnectionError()), False, type(None)),
        (FakeStream(1), False, type(None)),
    ],
)
async def test_end_of_a_body_has_a_cause_if_it_failed(stream, fired, cause):
    """A body read whole and one that was left early end without a cause."""
    log = ClientRequestContext(REQUEST).log
    stream._timer = FakeTimer(fired)
    response = FakeResponse(stream)
    record_response(log, response)
    assert not log.is_complete
    await asyncio.sleep(1.0)
    stream.total_bytes = 5
    response.connection.give_back()

    assert (1.0, 5) == (log.total_duration, log.response_length)
    if cause is None:
        assert stream.error is log.response_cause
    else:
        assert isinstance(log.response_cause, cause)


async def test_other_protocols_are_complete_at_the_headers():
    """A web socket's traffic is no body."""
    log = ClientRequestContext(REQUEST).log
    response = FakeResponse(FakeStream(1), status=101)
    record_response(log, response)

    assert log.is_complete
    assert [] == response.connection.callbacks
