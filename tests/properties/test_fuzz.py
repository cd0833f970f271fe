"""Readers of any text never fail, and no view of it shows too much."""

from __future__ import annotations

import json
import time
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest
from calls import begin, begin_body, end, end_call
from chains import in_virtual_time
from hypothesis import example, given, settings
from hypothesis import strategies as st
from multidict import CIMultiDict, CIMultiDictProxy

from aioretry_smithy import HttpRequest, LogFormatter, RequestLog
from aioretry_smithy._text.mask import DEFAULT_MASK

EXAMPLES = settings.default.max_examples
"""As many as the profile says; what is cheap here gets a multiple of it."""
MARK = "c4n4ry"
# Texts of any kind, and such as are close to being something.
anything = st.text(st.characters(codec=None), max_size=40)
tokens = st.sampled_from(
    [
        *"0 1 9 -1 1e9 nan inf 0x1 , ; : = / ? # & @ // % %% ' \" b' \\ | + - \t \n \r",
        *"Mon Monday Sun, 06 Nov 1994 94 0000 9999 08:49:37 24:00:00 GMT UTC".split(),
        *"exponential=200:10000:2.0 fibonacci fixed= random=1:2 jitter=0.2".split(),
        *"maxAttempts=3 200ms 10s 1.5s 999999999999s -0.0".split(),
        *"http: https://a b:c@d ?token= &key= password= token".split(),
        "\u0663",
        "\x1b[2J",
        "\u2028",
        "\udcff",
        "9" * 5000,
    ]
)
nearly = st.lists(tokens, max_size=8).map("".join)
texts = anything | nearly


secrets = st.text(
    st.characters(codec="utf-8", exclude_characters="&#@/?", exclude_categories="ZC"),
    max_size=12,
).map(lambda text: f"{MARK}{text}")
names = st.sampled_from("token api_key password X-Amz-Signature clientSecret".split())


@given(before=texts, user=st.text("abc", max_size=3), secret=secrets, after=texts)
@settings(max_examples=10 * EXAMPLES)
def test_no_password_gets_through(before, user, secret, after):
    """The text before the host of a URL is hidden, with anything around it."""
    shown = DEFAULT_MASK.text(f"{before}http://{user}:{secret}@example.com/{after}")

    assert MARK not in shown


@given(before=texts, name=names, secret=secrets, after=texts)
@settings(max_examples=10 * EXAMPLES)
def test_no_parameter_gets_through(before, name, secret, after):
    """A secret parameter is hidden, whatever stands around it."""
    shown = DEFAULT_MASK.text(f"{before}?{name}={secret}&page={after}")

    assert MARK not in shown


@given(unit=st.text("ab:/@?&#;=%+ '\"[]\\\n1K", min_size=1, max_size=6), tail=nearly)
@settings(max_examples=EXAMPLES)
@example(unit="//", tail="@")
@example(unit="//a:1", tail="@")
@example(unit="b'", tail="\\")
@example(unit="?", tail="token=")
@example(unit="?aB", tail="=")
@example(unit="%4", tail="=")
def test_long_texts_are_masked_in_linear_time(unit, tail):
    """A server that knows the patterns cannot keep a client busy with them."""
    text = unit * (100_000 // len(unit)) + tail
    started = time.process_time()
    log_of(HttpRequest("GET", "http://a/"), failure=ValueError(text)).to_dict()

    assert time.process_time() - started < 2.0


def log_of(
    request: HttpRequest,
    *,
    reason: str = "",
    headers: CIMultiDict[str] | None = None,
    failure: BaseException | None = None,
) -> RequestLog:
    """Make the log of a call of two attempts: one failed, one was answered."""
    response: Any = SimpleNamespace(
        status=503,
        reason=reason,
        headers=CIMultiDictProxy(headers or CIMultiDict()),
        history=(),
        request_info=SimpleNamespace(headers=request.headers),
    )

    async def call() -> RequestLog:
        ctx = begin(request)
        end(ctx.derive(request), failure or OSError(reason))
        answered = ctx.derive(request)
        begin_body(answered, response)
        end_call(ctx, answered)
        return ctx.log

    return in_virtual_time(call())


@given(
    method=texts,
    url=texts | texts.map("http://example.com/{}".format),
    params=st.none() | st.dictionaries(texts, texts, max_size=2) | texts,
    headers=st.lists(st.tuples(texts, texts), max_size=3),
    reason=texts,
    failure=texts.map(ValueError) | texts.map(aiohttp.InvalidURL),
)
@settings(max_examples=5 * EXAMPLES)
def test_views_of_any_call_are_whole_and_one_line_per_entry(
    method, url, params, headers, reason, failure
):
    """No text breaks a tree, a line or a JSON value, or makes one of them fail."""
    given_headers = CIMultiDict(headers)
    request = HttpRequest(method, url, headers=given_headers, params=params)
    log = log_of(request, reason=reason, headers=given_headers, failure=failure)
    lines = log.render().split("\n")
    json_lines = [
        LogFormatter.json().format_request(log),
        LogFormatter.json().format_response(log),
    ]
    text_lines = [
        LogFormatter.text().format_request(log),
        LogFormatter.text().format_response(log),
    ]

    assert 3 == len(lines)
    assert all(line.isprintable() for line in [*lines, *text_lines])
    assert all(repr(value).isprintable() for value in (log, request))
    # JSON leaves the one control character of ASCII that moves nothing.
    assert all(line.replace("\x7f", "").isprintable() for line in json_lines)
    assert log.to_dict() == json.loads(json.dumps(log.to_dict()))
    assert all(isinstance(json.loads(line), dict) for line in json_lines)


@pytest.mark.parametrize("name", ["Authorization", "cookie", "SET-COOKIE"])
@given(secret=texts, other=texts)
@settings(max_examples=EXAMPLES)
def test_no_secret_header_gets_through(name, secret, other):
    """The value of a secret header is in no view, whatever is in it."""
    headers = CIMultiDict({"X-Other": other, name: f"{MARK}{secret}"})
    request = HttpRequest("GET", "http://example.com/", headers=headers)
    log = log_of(request, headers=headers)
    views = [log.render(), json.dumps(log.to_dict()), repr(log), repr(request)]
    for formatter in (LogFormatter.text(), LogFormatter.json()):
        views += [formatter.format_request(log), formatter.format_response(log)]

    assert [] == [view for view in views if MARK in view]
