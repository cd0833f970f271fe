"""A request as decorators see it: joined, copied, never complaining before aiohttp."""

from __future__ import annotations

import aiohttp
import pytest
from multidict import CIMultiDict
from yarl import URL

from aioretry_smithy import HttpRequest

BASE = URL("https://example.com/api/")


@pytest.mark.parametrize(
    ("target", "url"),
    [
        ("orders", "https://example.com/api/orders"),
        ("/orders", "https://example.com/orders"),
        ("?page=2", "https://example.com/api/?page=2"),
        ("http://other/", "http://other/"),
        (URL("orders"), "https://example.com/api/orders"),
        ("", "https://example.com/api/"),
    ],
)
def test_url_is_joined_with_the_base(target, url):
    """A relative URL is taken as aiohttp takes it, an absolute one as it is."""
    assert URL(url) == HttpRequest("GET", target, base_url=BASE).url


def test_url_without_a_base_stays_relative():
    """It is for aiohttp to refuse it."""
    assert URL("/orders") == HttpRequest("GET", "/orders").url


def test_url_leaves_params_where_they_are():
    """``params`` are joined for the log and stay an option for aiohttp."""
    request = HttpRequest("GET", "http://h/?a=1", params={"b": "2"})

    assert URL("http://h/?a=1") == request.url
    assert URL("http://h/?a=1&b=2") == request.full_url()
    assert {"params": {"b": "2"}} == request.options


@pytest.mark.parametrize(
    ("target", "error"),
    [
        ("http://h:99999/", aiohttp.InvalidUrlClientError),
        ("http://[::1", aiohttp.InvalidUrlClientError),
        ("http://\u2028/", aiohttp.InvalidUrlClientError),
        (b"http://h/", TypeError),
        (None, TypeError),
        (5, TypeError),
    ],
)
def test_what_is_no_url_raises_as_in_aiohttp(target, error):
    """The URL of such a request raises aiohttp's error, the log gets a text."""
    request = HttpRequest("GET", target, base_url=BASE)

    with pytest.raises(error):
        _ = request.url
    assert URL.build(path=str(target), encoded=True) == request.full_url()


@pytest.mark.parametrize("params", [5, object(), {"a": object()}, [1]])
def test_bad_params_do_not_trouble_the_log(params):
    """It is for aiohttp to refuse them; the log shows the URL without."""
    assert "http://h/" in str(HttpRequest("GET", "http://h/", params=params).full_url())


def test_method_is_in_upper_case():
    """Strategies and keys compare methods, so there is one spelling."""
    request = HttpRequest("get", "/")

    assert "GET" == request.method
    assert "POST" == request.replace(method="post").method


@pytest.mark.parametrize(
    "headers",
    [
        {"A": "1", "B": "2"},
        [("A", "1"), ("B", "2")],
        CIMultiDict(A="1", B="2"),
        zip("AB", "12", strict=True),
    ],
    ids=["dict", "pairs", "multidict", "iterator"],
)
def test_headers_can_be_read_again_and_again(headers):
    """Looking at the headers does not use them up, whatever form they came in."""
    request = HttpRequest("GET", "/", headers=headers)
    expected = CIMultiDict(A="1", B="2")

    assert expected == request.headers
    assert expected == request.headers
    assert expected == CIMultiDict(request.arguments["headers"])
    assert expected == request.replace(method="PUT").headers


@pytest.mark.parametrize("headers", [None, {"A": "1"}])
def test_options_cannot_be_changed_in_place(headers):
    """With headers or without: each reader gets a copy."""
    request = HttpRequest("GET", "/", headers=headers, data=b"x")
    request.options["data"] = b"y"

    assert {"data": b"x"} == request.options
    assert {"headers": headers, "data": b"x"} == request.arguments


def test_iterator_given_to_a_copy_is_kept_too():
    """A decorator may pass any form of headers on as well."""
    request = HttpRequest("GET", "/").replace(headers=iter([("A", "1")]))

    assert request.headers == request.headers == CIMultiDict(A="1")


def test_headers_cannot_be_changed_in_place():
    """Each reader gets a copy, so that no decorator changes another's request."""
    request = HttpRequest("GET", "/", headers={"A": "1"})
    request.headers["A"] = "2"

    assert "1" == request.headers["A"]


def test_arguments_are_those_that_were_given():
    """Nothing is added, for mocks that compare; ``headers=None`` stays as well.

    What goes out first is what was given, object for object.
    """
    assert {} == HttpRequest("GET", "/").arguments
    assert {"headers": None} == HttpRequest("GET", "/", headers=None).arguments
    headers = {"A": "1"}
    request = HttpRequest("GET", "/", headers=headers, data=b"x")

    assert {"headers": headers, "data": b"x"} == request.arguments == request.given
    assert headers is request.given["headers"]


def test_with_header_sets_one_value():
    """Older values go, in any case of the name; the first request stays as it was."""
    request = HttpRequest("GET", "/", headers=[("x-a", "1"), ("X-A", "2"), ("B", "3")])
    changed = request.with_header("X-a", "4")

    assert ["4"] == changed.headers.getall("x-a")
    assert "3" == changed.headers["B"]
    assert ["1", "2"] == request.headers.getall("x-a")


def test_replace_changes_a_copy():
    """An attribute that is not named stays, in the copy and in the original."""
    request = HttpRequest("GET", "a", base_url=BASE, headers={"A": "1"}, data=b"x")
    _ = request.url
    changed = request.replace(url="b", data=b"y", json=None)

    assert URL("https://example.com/api/b") == changed.url
    assert {"data": b"y", "json": None} == changed.options
    assert "1" == changed.headers["A"]
    assert URL("https://example.com/api/a") == request.url
    assert {"data": b"x"} == request.options
    assert request.url is request.replace(data=b"z").url


def test_replace_keeps_the_class():
    """A request of one's own class stays one."""

    class OwnRequest(HttpRequest):
        pass

    assert type(OwnRequest("GET", "/").with_header("A", "1")) is OwnRequest


def test_merged_headers_put_the_request_first():
    """A header of the request replaces the session's values, as in aiohttp."""
    request = HttpRequest("GET", "/", headers=[("a", "1"), ("a", "2")])
    merged = request.merged_headers({"A": "0", "B": "0"})

    assert ["1", "2"] == merged.getall("a")
    assert "0" == merged["B"]


@pytest.mark.parametrize("headers", [5, ["x"], [("a", "b", "c")]])
def test_bad_headers_do_not_trouble_the_log(headers):
    """It is for aiohttp to refuse them."""
    request = HttpRequest("GET", "/", headers=headers)

    assert {"A": "1"} == dict(request.merged_headers({"A": "1"}))


def test_repr_is_one_line():
    """Characters at which a terminal or a log would break are escaped."""
    request = HttpRequest("GE\nT", "http://h/")

    assert "<HttpRequest GE\\nT http://h/>" == repr(request)


def test_repr_hides_credentials():
    """A request in a debugger or a message shows no secret."""
    request = HttpRequest("GET", "http://u:p@h/?token=abc")

    assert "<HttpRequest GET http://****@h/?token=****>" == repr(request)
