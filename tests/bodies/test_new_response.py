"""Responses that were made here."""

from __future__ import annotations

import gc
import weakref

import aiohttp
import pytest
from multidict import CIMultiDict
from yarl import URL

from aioretry_smithy import HttpRequest, new_response

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
