"""Which bodies go out again, and that the others go out once at most."""

from __future__ import annotations

import io
from array import array

import aiohttp
import pytest
from multidict import MultiDict, MultiDictProxy

from aioretry_smithy import (
    ClientRequestContext,
    HttpRequest,
    UnprocessedRequestError,
)
from aioretry_smithy._body import can_be_sent_again, claim, is_spent


def form(value, **options):
    data = aiohttp.FormData()
    data.add_field("a", value, **options)
    return data


async def chunks():
    yield b"a"


AGAIN = [
    None,
    b"",
    b"abc",
    bytearray(b"abc"),
    memoryview(b"abc"),
    "abc",
    {},
    {"a": "b", "c": 1, "d": 1.5, "e": None},
    MultiDict([("a", "1"), ("a", "2")]),
    MultiDictProxy(MultiDict(a="1")),
    [],
    [("a", "b"), ["c", b"d"]],
    (("a", "b"),),
    aiohttp.FormData({"a": "b"}),
    aiohttp.FormData(),
]
ONCE = [
    io.BytesIO(b"abc"),
    io.StringIO("abc"),
    chunks(),
    aiohttp.BytesPayload(b"abc"),
    aiohttp.JsonPayload({}),
    aiohttp.MultipartWriter(),
    {"a": io.BytesIO(b"abc")},
    [("a", "b"), ("c", io.BytesIO(b"abc"))],
    [io.BytesIO(b"abc")],
    [MultiDict(a=io.BytesIO(b"abc"))],
    MultiDict(a=io.BytesIO(b"abc")),
    array("b", b"abc"),
    iter([b"abc"]),
    {b"a"},
    object(),
]


def name(value):
    return type(value).__name__


def sending(data):
    request = HttpRequest("POST", "http://example.com/", data=data)
    return ClientRequestContext(request), request


@pytest.mark.parametrize("data", AGAIN, ids=name)
async def test_values_go_out_again(data):
    """What aiohttp turns into the same bytes each time is never refused."""
    ctx, request = sending(data)
    claim(ctx, request)
    claim(ctx.derive(request), request)

    assert can_be_sent_again(data)
    assert not is_spent(ctx, request)


@pytest.mark.parametrize("data", ONCE, ids=name)
async def test_what_is_read_goes_out_once(data):
    """Everything else is refused the second time, whoever sends it."""
    ctx, request = sending(data)
    assert not is_spent(ctx, request)
    claim(ctx.derive(request), request)
    assert is_spent(ctx, request)

    with pytest.raises(UnprocessedRequestError) as caught:
        claim(ctx.derive(request), request.with_header("A", "1"))

    message = f"the body was read by an earlier attempt: {type(data).__name__}"
    assert message == str(caught.value)


@pytest.mark.parametrize(
    ("value", "again"),
    [("b", True), (b"b", True), (io.BytesIO(b"b"), False), (chunks(), False)],
    ids=name,
)
async def test_multipart_forms_are_judged_by_their_parts(value, again):
    """A form is as good as its worst part."""
    data = form(value, filename="b.txt")
    data.add_field("b", "c")

    assert again is can_be_sent_again(data)


async def test_request_without_a_body():
    """No ``data`` at all is nothing to lose."""
    request = HttpRequest("POST", "http://example.com/", json={"a": 1})
    ctx = ClientRequestContext(request)
    claim(ctx, request)
    claim(ctx, request)

    assert not is_spent(ctx, request)


async def test_body_made_anew_goes_out():
    """A decorator that gives each attempt a body of its own is not in the way."""
    ctx, request = sending(chunks())
    claim(ctx, request)
    claim(ctx, request.replace(data=chunks()))


async def test_calls_are_apart():
    """The guard is the call's: what comes of one body in two calls is the caller's."""
    ctx, request = sending(io.BytesIO(b"abc"))
    claim(ctx, request)
    claim(ClientRequestContext(request), request)
