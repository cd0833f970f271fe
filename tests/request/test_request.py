"""Requests as decorators see them: of HTTP, to one of several servers, of functions."""

import aiohttp
import pytest
from chains import Clock, raises_exactly
from multidict import CIMultiDict
from yarl import URL

from aioretry_smithy import Endpoint, HttpRequest, RpcRequest
from aioretry_smithy._request.keys import host_key, service_key
from aioretry_smithy._request.request import RoutedRequest

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


class To:
    """Where a request goes."""

    endpoint = Endpoint("http://a.example/v1")
    key = "a.example:80"
    service_key = "orders"


HERE = To()


def routed(**options):
    """Return a request to a server."""
    request = HttpRequest("POST", "/orders", **options)
    return RoutedRequest.to(HERE, URL("http://a.example/v1/orders"), request)


def test_has_the_url_of_the_server_and_all_else_of_the_request():
    """What the caller gave is the same objects."""
    request = HttpRequest("POST", "/orders", headers={"A": "b"}, data=b"c")

    sent = RoutedRequest.to(HERE, URL("http://a.example/v1/orders"), request)

    assert ("POST", URL("http://a.example/v1/orders")) == (sent.method, sent.url)
    assert sent.target == sent.url
    assert sent.arguments is request.arguments
    assert sent.given is request.given


def test_keys_are_those_of_the_route():
    """A server has one key, its service another."""
    assert ("a.example:80", "orders") == (host_key(routed()), service_key(routed()))


@pytest.mark.parametrize(
    "change",
    [
        {"method": "PUT"},
        {"headers": {"A": "b"}},
        {"url": "http://a.example/v1/other"},
        {"url": URL("http://A.example:80/elsewhere")},
        {"url": "/relative"},
    ],
)
def test_copy_goes_there_too(change):
    """As long as its origin is the same."""
    assert routed().replace(**change).route is HERE


@pytest.mark.parametrize("url", ["http://b.example/v1/orders", "https://a.example/v1/"])
def test_copy_with_another_origin_does_not(url):
    """It goes where it says."""
    changed = routed().replace(url=url)

    assert (None, URL(url)) == (changed.route, changed.url)


@pytest.mark.parametrize("url", ["http://a:port/", 7])
def test_copy_with_no_url_does_not(url):
    """That is aiohttp's to report."""
    assert routed().replace(url=url).route is None


def test_copy_without_its_body_goes_there():
    """Logs keep that."""
    kept = routed(data=b"body").without_body()

    assert (HERE, "http://a.example/v1/orders") == (kept.route, str(kept.url))


def test_request_has_the_name_and_the_arguments():
    """Arguments by position are in a tuple, those by name in a dictionary."""
    request = RpcRequest("fetch", ["eu"], {"page": 2})

    assert ("fetch", ("eu",), {"page": 2}) == (
        request.name,
        request.args,
        request.kwargs,
    )


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"name": "read"}, ("read", (1,), {"a": 2})),
        ({"args": (3,)}, ("fetch", (3,), {"a": 2})),
        ({"kwargs": {}}, ("fetch", (1,), {})),
    ],
)
def test_copy_has_the_changes_alone(changes, expected):
    """The other parts stay, and so does the request itself."""
    request = RpcRequest("fetch", (1,), {"a": 2})
    copy = request.replace(**changes)

    assert expected == (copy.name, copy.args, copy.kwargs)
    assert ("fetch", (1,)) == (request.name, request.args)


@pytest.mark.parametrize("name", ["", None, 7])
def test_name_is_a_text(name):
    """A log without a name tells nothing."""
    with pytest.raises(ValueError, match=r"^name: .* \(expected: a str that is not"):
        RpcRequest(name)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"args": "http://h"}, "args: <str object> (expected: a tuple)"),
        ({"args": 9}, "args: <int object> (expected: a tuple)"),
        ({"args": None}, "args: None (expected: a tuple)"),
        (
            {"kwargs": ["page"]},
            "kwargs: <list object> (expected: a mapping of names, or None)",
        ),
    ],
)
def test_arguments_are_refused_without_showing_them(changes, message):
    """A text in place of a tuple would be one argument for each letter."""
    with raises_exactly(message):
        RpcRequest("fetch", (1,)).replace(**changes)


def test_repr_shows_no_argument():
    """They may be secrets, or large."""
    request = RpcRequest("fetch", ("secret",), {"key": Clock()})

    assert "<RpcRequest fetch>" == repr(request)


def test_what_a_log_keeps_has_no_argument():
    """Neither of a request that was made by hand, nor of a changed one."""
    request = RpcRequest("fetch", ("large",))
    kept = request.without_body()
    renamed = request.replace(name="read").without_body()

    assert ("fetch", (), {}) == (kept.name, kept.args, kept.kwargs)
    assert ("read", ()) == (renamed.name, renamed.args)
