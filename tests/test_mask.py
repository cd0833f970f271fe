"""What logs hide: credentials in URLs, headers and the messages of errors."""

from __future__ import annotations

import time

import pytest
from multidict import CIMultiDict

from aioretry_smithy._mask import DEFAULT_MASK, Mask


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://u:p@example.com/", "https://****@example.com/"),
        ("https://token@example.com/", "https://****@example.com/"),
        ("https://:p@example.com:1/", "https://****@example.com:1/"),
        ("//u:p@example.com/", "//****@example.com/"),
        ("http://u:p@a/ or http://v:q@b/", "http://****@a/ or http://****@b/"),
        ("http://u:p@q@example.com/", "http://****@example.com/"),
        # Not URLs: the caller forgot to quote the password.
        ("http://u:p/q@example.com/", "http://****@example.com/"),
        ("http://u:p?q@example.com/", "http://****@example.com/"),
        ("http://u:1#q@example.com/", "http://u:1#q@example.com/"),
        ("http://u:p#q@example.com/", "http://****@example.com/"),
        ("http:///u:p@example.com/", "http:///****@example.com/"),
        ("http:////u:p@example.com/", "http:////****@example.com/"),
    ],
)
def test_user_and_password_are_hidden(text, shown):
    """What stands before the ``@`` of a URL does not appear."""
    assert shown == DEFAULT_MASK.text(text)


@pytest.mark.parametrize(
    "text",
    [
        "http://localhost:4873/@scope/package",
        "http://[::1]:8080/@scope",
        "http://example.com/?mail=a@example.com",
        "write to http://example.com: a@example.com",
        "a@example.com // b@example.com",
        "GET /?page=2&sort=name#top",
        "/?monkey=1&tokyo=2&keyboard=3&signal=4&passenger=5",
        "no URL at all",
        "",
    ],
)
def test_what_is_no_secret_is_shown(text):
    """A log that hides everything helps nobody."""
    assert text == DEFAULT_MASK.text(text)


@pytest.mark.parametrize(
    "name",
    [
        "token",
        "access_token",
        "id-token",
        "X-Amz-Security-Token",
        "X-Amz-Signature",
        "X-Amz-Credential",
        "AWSAccessKeyId",
        "key",
        "KEY",
        "api_key",
        "apiKey",
        "x-functions-key",
        "subscription-key",
        "subscriptionKey",
        "client_secret",
        "password",
        "passwd",
        "pwd",
        "pass",
        "sig",
        "signature",
        "jwt",
        "auth",
        "authorization",
        "sid",
        "sessionid",
        "client_assertion",
        "to%6Ben",
        "access%5Ftoken",
    ],
)
@pytest.mark.parametrize("before", ["?", "?a=1&", "#", "?a=b;", "?next=/login?"])
def test_secret_parameters_are_hidden(name, before):
    """The usual names are known in any spelling, also where URLs are nested."""
    shown = DEFAULT_MASK.text(
        f"http://example.com/{before}{name}=S3CR3T?;=/@S3CR3T&b=2"
    )

    assert f"http://example.com/{before}{name}=****&b=2" == shown


def test_a_message_around_a_url_stays():
    """Of an error's text only the secret goes."""
    text = "502, message='Bad', url='http://u:p@h/?key=k' (tried twice)"

    assert (
        "502, message='Bad', url='http://****@h/?key=**** (tried twice)"
        == DEFAULT_MASK.text(text)
    )


def test_masking_twice_changes_nothing():
    """What is hidden already stays as it is."""
    once = DEFAULT_MASK.text("http://u:p@h/?key=k&a=1")

    assert once == DEFAULT_MASK.text(once)


def test_very_many_parameters_take_no_time():
    """A hostile ``Location`` header neither recurses nor stalls."""
    text = "?a=" * 20_000 + "?token=S3CR3T"

    assert "?a=" * 20_000 + "?token=****" == DEFAULT_MASK.text(text)


def test_secret_headers_are_hidden():
    """The four headers of credentials are, in any case; others show their value."""
    headers = CIMultiDict(
        {
            "AUTHORIZATION": "Basic abc",
            "proxy-authorization": "Basic abc",
            "Cookie": "sid=1",
            "Set-Cookie": "sid=1",
            "Accept": "*/*",
        }
    )

    assert {
        "AUTHORIZATION": "****",
        "proxy-authorization": "****",
        "Cookie": "****",
        "Set-Cookie": "****",
        "Accept": "*/*",
    } == DEFAULT_MASK.headers(headers)


def test_urls_in_headers_are_masked():
    """A redirect's target holds a token as easily as the request did."""
    headers = {"Location": "https://u:p@h/?code=1&access_token=abc"}

    assert {"Location": "https://****@h/?code=1&access_token=****"} == (
        DEFAULT_MASK.headers(headers)
    )


def test_repeated_headers_are_one_line():
    """Values are joined as HTTP does, and a hidden one is hidden once."""
    headers = CIMultiDict([("Via", "a"), ("Set-Cookie", "s=1")] * 2)

    assert {"Via": "a, a", "Set-Cookie": "****"} == DEFAULT_MASK.headers(headers)


def test_further_names():
    """One may name further headers and parameters, in any case."""
    mask = Mask(headers=["X-Api-KEY"], query_parameters=["Code"])

    assert {"x-api-key": "****"} == mask.headers({"x-api-key": "abc"})
    assert "?CODE=****&key=****" == mask.text("?CODE=abc&key=abc")


def test_masks_add_up():
    """Two masks hide what either hides, and neither is changed."""
    first, second = Mask(headers=["A"]), Mask(query_parameters=["b"])
    both = first | second

    assert {"a": "****"} == both.headers({"a": "1"})
    assert "?b=****" == both.text("?b=1")
    assert "?b=1" == first.text("?b=1")
    assert {"a": "1"} == second.headers({"a": "1"})


@pytest.mark.parametrize(
    "text", ["//a:b" * 40_000, "//a:b@" * 40_000, "?a=b&" * 40_000]
)
def test_masking_takes_time_in_proportion_to_the_text(text):
    """A server that sends such a header must not stop the event loop."""
    started = time.perf_counter()
    Mask().text(text)

    assert time.perf_counter() - started < 2.0
