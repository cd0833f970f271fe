"""Previews of bodies in the log, and how its views show them."""

import gc
import io
import itertools
import json
import tracemalloc
import weakref
from collections import UserDict

import aiohttp
import pytest
from aiohttp import payload
from chains import connected, retrying
from multidict import MultiDict

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitState,
    ContentPreviewingClient,
    HttpRequest,
    LoggingClient,
    RequestLog,
    RetryStrategy,
    SessionBuilder,
    client_decorator,
    new_response,
)
from aioretry_smithy._logging.previews import preview_of_request
from aioretry_smithy.testing import ScriptedTransport

URL = "http://example.com/orders"


TEXT = {"Content-Type": "text/plain"}


PREVIEWING = ContentPreviewingClient.new_decorator(20)


RETRYING = retrying(
    RetryStrategy.on_server_error_status(Backoff.fixed(0.5)), max_total_attempts=3
)


ANSWERS = [(503, TEXT, b"busy"), (200, {"Content-Type": "application/json"}, b"{}")]


async def call(*decorators, answers=ANSWERS, **options):
    """Send a request through a chain, the first decorator innermost."""
    async with (
        connected(None, ScriptedTransport(answers), *decorators) as session,
        session.post(URL, **options) as response,
    ):
        return RequestLog.of(response)


@pytest.mark.parametrize("max_length", [0, -1, 1.0, True, None, "9"])
def test_length_is_a_positive_number(max_length):
    """It is checked where the decorator is made."""
    with pytest.raises(ValueError, match="^max_length: .* an int >= 1"):
        ContentPreviewingClient.new_decorator(max_length)


async def test_there_is_one_in_a_chain():
    """Two could not agree upon how much to keep."""
    with pytest.raises(ValueError, match="at most one ContentPreviewingClient"):
        connected(None, PREVIEWING, RETRYING, ContentPreviewingClient.new_decorator(1))


def test_chain_says_how_much_is_kept():
    """With the other settings."""
    chain = SessionBuilder().decorator(PREVIEWING).describe()

    assert "ContentPreviewingClient(max_length=20)" == chain.splitlines()[0]


async def test_standard_chain_takes_it():
    """Inside, so that each attempt has its previews."""
    transport = ScriptedTransport(ANSWERS)
    session = SessionBuilder.standard(inside=[transport, PREVIEWING]).build()
    async with session, session.get(URL) as response:
        log = RequestLog.of(response)

    assert ["busy", "{}"] == [child.response_content_preview for child in log.children]


async def test_log_of_the_call_shows_first_request_and_last_response():
    """As it does with everything else."""

    @client_decorator
    async def number(delegate, ctx, request):
        return await delegate.execute(ctx, request.replace(data=f"no. {ctx.attempt}"))

    log = await call(PREVIEWING, number, RETRYING)

    assert ["no. 1", "no. 2"] == [
        child.request_content_preview for child in log.children
    ]
    assert "no. 1" == log.request_content_preview
    assert "{}" == log.response_content_preview


async def test_outside_only_what_the_call_ends_with_is_seen():
    """The responses in between never come that far."""
    log = await call(RETRYING, PREVIEWING, json={})

    assert [None, "{}"] == [child.response_content_preview for child in log.children]
    assert "{}" == log.response_content_preview == log.request_content_preview


async def test_tree_shows_previews_in_a_line_each():
    """The request's stands under the call, a response's under its attempt."""
    log = await call(
        PREVIEWING,
        RETRYING,
        answers=[(503, TEXT, b"busy\nbusy\x1b[2J"), 502, ANSWERS[1]],
        data={"item": "7", "password": "S3CR3T"},
    )
    lines = log.render().splitlines()

    assert "│  > item=7&password=****…" == lines[1]
    assert lines[2].startswith("├─ 1  503")
    assert r"│     < busy\nbusy\x1b[2J" == lines[3]
    assert lines[4].startswith("├─ 2  502")
    assert lines[5].startswith("└─ 3  200")
    assert "      < {}" == lines[6]
    assert 7 == len(lines)


async def test_tree_without_attempts_shows_both_previews():
    """They stand under the line of the call, and are not longer than a line."""
    log = await call(
        ContentPreviewingClient.new_decorator(500),
        answers=[(200, TEXT, b"x" * 600)],
        data="sent",
    )

    assert ["   > sent", f"   < {'x' * 71}…"] == log.render().splitlines()[1:]


async def test_attribute_has_what_the_views_hide():
    """In the views, and in the lines of a log, no secret is seen."""
    secret = b'{"token": "S3CR3T", "shop": "7"}'
    logging = LoggingClient.new_decorator(sensitive_query_parameters=["shop"])
    log = await call(
        ContentPreviewingClient.new_decorator(28),
        logging,
        answers=[(200, {"Content-Type": "application/json"}, secret)],
        data="shop=7&token=S3CR3T",
    )

    assert "shop=7&token=S3CR3T" == log.request_content_preview
    assert '{"token": "S3CR3T", "shop": …' == log.response_content_preview
    assert "shop=****&token=****" == log.to_dict()["request_content_preview"]
    assert '{"token": ****, "shop": …' == log.to_dict()["response_content_preview"]
    assert "S3CR3T" not in log.render() + json.dumps(log.to_dict())


async def test_log_keeps_no_body():
    """Only the preview outlives the call."""

    class Text(str):
        """One that can be watched."""

    body = Text("a" * 100)
    is_alive = weakref.ref(body)
    log = await call(PREVIEWING, data=body, answers=[200])
    del body
    gc.collect()

    assert "a" * 20 + "…" == log.request_content_preview
    assert is_alive() is None


async def test_response_that_took_the_place_of_another_has_no_preview_of_it():
    """A decorator further out may answer itself."""

    @client_decorator
    async def replace(delegate, ctx, request):
        await delegate.execute(ctx, request)
        return new_response(request, 200, body=b"mine")

    log = await call(PREVIEWING, replace)

    assert log.response_content_preview is None


async def test_response_of_a_fallback_is_shown():
    """Any response that comes back through the decorator has a preview."""
    breaker = CircuitBreaker()
    breaker.enter_state(CircuitState.FORCED_OPEN)

    async def fallback(ctx, request):
        return new_response(request, 200, headers=TEXT, body=b"fallback")

    breaking = CircuitBreakerClient.new_decorator(breaker, fallback=fallback)
    log = await call(breaking, PREVIEWING, answers=[])

    assert "fallback" == log.response_content_preview


async def test_mocked_response_has_a_preview(aioresponses_mock):
    """Responses that aioresponses makes have a stream too."""
    aioresponses_mock.get(URL, body="mocked", content_type="text/plain")
    async with connected(None, PREVIEWING) as session:
        async with session.get(URL) as response:
            body = await response.text()
        log = RequestLog.of(response)

    assert "mocked" == body == log.response_content_preview


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
