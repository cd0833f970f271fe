"""Which requests have a preview, and that nothing of them is used up."""

from __future__ import annotations

import io
import itertools
import json
import tracemalloc
from collections import UserDict

import aiohttp
import pytest
from aiohttp import payload
from multidict import MultiDict

from aioretry_smithy import HttpRequest
from aioretry_smithy._logging.previews import preview_of_request

MANY = 10_000_000


def preview(max_length=10, defaults=None, headers=None, **options):
    request = HttpRequest("POST", "http://h/", headers=headers or {}, **options)
    return preview_of_request(request, defaults, max_length)


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ({}, None),
        ({"data": "abc"}, "abc"),
        ({"data": ""}, None),
        ({"data": "0123456789"}, "0123456789"),
        ({"data": "0123456789x"}, "0123456789…"),
        ({"json": {"a": [1, None]}}, '{"a": [1, …'),
        ({"json": []}, "[]"),
        ({"json": ()}, "[]"),
        ({"json": 0}, "0"),
        ({"json": "é"}, '"\\u00e9"'),
        ({"json": {1: True, None: 2.5}}, '{"1": true…'),
        ({"json": {None: 1}}, '{"null": 1…'),
        ({"json": object()}, None),
        ({"json": {"a": object()}}, None),
        ({"data": {"a": "b c", "d": 1}}, "a=b+c&d=1"),
        ({"data": MultiDict([("a", "1"), ("a", "2")])}, "a=1&a=2"),
        ({"data": [("a", "1"), ["b", "2"]]}, "a=1&b=2"),
        ({"data": (("a", None), ("é", 1.5))}, "a=None&%C3…"),
        ({"data": aiohttp.FormData({"a": "é"})}, "a=%C3%A9"),
        ({"data": aiohttp.FormData({"a": "é"}, charset="latin-1")}, "a=%E9"),
        ({"data": payload.StringPayload("abc")}, "abc"),
        ({"data": payload.JsonPayload([1])}, "[1]"),
        ({"data": payload.BytesPayload(b"abc", content_type="text/csv")}, "abc"),
        ({"data": payload.BytesPayload(b"abc")}, None),
        ({"data": b"abc"}, None),
    ],
)
def test_text_in_memory_is_shown(options, shown):
    """It looks as it goes over the wire."""
    assert shown == preview(**options)


class OwnPayload(payload.BytesPayload):
    """A payload that may send anything."""


class Untouchable:
    """Raises when more than its type is looked at."""

    def __iter__(self):
        raise AssertionError

    __aiter__ = __call__ = read = __len__ = __bool__ = __iter__


class UntouchableFile(io.RawIOBase):
    read = Untouchable.__iter__


async def generator():
    yield b"abc"


@pytest.mark.parametrize(
    "data",
    [
        Untouchable(),
        UntouchableFile(),
        io.StringIO("abc"),
        io.BytesIO(b"abc"),
        lambda: "abc",
        generator(),
        iter(["abc"]),
        aiohttp.FormData({"a": io.BytesIO()}),
        aiohttp.FormData({"a": "b"}, default_to_multipart=True),
        {"a": io.BytesIO(b"abc")},
        {"a": iter("abc")},
        {"a": b"abc"},
        [("a", "b"), ("c",)],
        ["ab"],
        [MultiDict(a="b")],
        UserDict(a="b"),
        payload.StringIOPayload,
        payload.BytesIOPayload(io.BytesIO(b"abc")),
        {"a": "\udc80"},
        OwnPayload(b"abc", content_type="text/csv"),
    ],
)
def test_all_else_is_left_alone(data):
    """Files, streams, factories, multipart forms, and what aiohttp will refuse."""
    assert preview(data=data, headers={"Content-Type": "text/plain"}) is None
    assert preview(data=data) is None


@pytest.mark.parametrize("make", [bytes, bytearray, memoryview])
def test_bytes_of_a_text_type_are_shown(make):
    """In the charset that the request names."""
    data = make("éabcdefghijk".encode("latin-1"))
    headers = {"content-type": "text/plain; charset=latin-1"}

    assert "éabcdefghi…" == preview(data=data, headers=headers)
    assert "éabcdefghi…" == preview(data=data, defaults=headers)
    assert data == make("éabcdefghijk".encode("latin-1"))


@pytest.mark.parametrize(
    "headers", [{"Content-Type": "image/png"}, {"Content-Encoding": "gzip"}]
)
@pytest.mark.parametrize("options", [{"data": "abc"}, {"json": 1}, {"data": {"a": 1}}])
def test_headers_have_the_last_word(headers, options):
    """A text that is sent as something else has no preview."""
    assert preview(headers=headers, **options) is None


def circular():
    document = {}
    document["a"] = document
    return document


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ({"json": {"a": "x" * MANY, "b": "y" * MANY}}, '{"a": "xxx…'),
        ({"json": ["x"] * MANY}, '["x", "x",…'),
        ({"json": dict.fromkeys(range(MANY // 10))}, '{"0": null…'),
        ({"json": circular()}, '{"a": {"a"…'),
        ({"data": "x" * MANY}, "xxxxxxxxxx…"),
        ({"data": {"a": "x" * MANY}}, "a=xxxxxxxx…"),
        ({"data": aiohttp.FormData({"a": "x" * MANY})}, "a=xxxxxxxx…"),
        (
            {"data": bytes(MANY).replace(b"\0", b"x"),
             "headers": {"Content-Type": "text/plain"}},
            "xxxxxxxxxx…",
        ),
    ],
    ids=["strings", "list", "dict", "circular", "str", "field", "form", "bytes"],
)  # fmt: skip
def test_huge_body_is_not_copied(options, shown):
    """Only its beginning is written."""
    tracemalloc.start()
    try:
        seen = preview(**options)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert shown == seen
    assert peak < 100_000


@pytest.mark.parametrize("max_length", [1, 7, 40, 400])
def test_beginning_of_a_document_is_exact(max_length):
    """Only characters that the preview would cut are left out."""
    document = {"a": [1, "é\n" * 20, {"b": {}, "c": []}], "d" * 30: "e" * 500, "f": 1.5}
    whole = json.dumps(document)

    assert f"{whole[:max_length]}…" == preview(max_length, json=document)


@pytest.mark.parametrize("max_length", [7, 10, 17])
def test_each_bracket_counts_once(max_length):
    """A document that is nested deeply is not cut before its time."""
    document = [[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]

    assert "[" * max_length + "…" == preview(max_length, json=document)


def test_beginning_of_a_form_is_exact():
    """Even where its fields are as short as they can be."""
    assert "=&" * 20 + "…" == preview(40, data=[("", "")] * 50)


class EndlessList(list):
    def __iter__(self):
        return itertools.chain(["x"] * 50, Untouchable())


class EndlessDict(dict):
    def items(self):
        return ((item, item) for item in EndlessList())


def test_rest_of_a_document_is_not_looked_at():
    """Going through millions of items takes time, although none is shown."""
    assert '["x", "x",…' == preview(json=EndlessList("ab"))
    assert '{"a": {"x"…' == preview(json={"a": EndlessDict(a=1)})
