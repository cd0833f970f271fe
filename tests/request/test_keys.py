"""Keys of requests."""

import pytest
from yarl import URL

from aioretry_smithy import HttpRequest
from aioretry_smithy._request.keys import (
    host_and_method_key,
    host_and_path_key,
    host_key,
    method_key,
)

KEYS = (host_key, method_key, host_and_method_key, host_and_path_key)


class FailingRequest:
    """A request whose URL cannot be asked for."""

    method = "GET"

    target, _base_url, route = "a target", None, None

    def __init__(self, error):
        self.error = error

    @property
    def url(self):
        raise self.error


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("http://example.com", "example.com:80"),
        ("https://example.com/orders?page=2#top", "example.com:443"),
        ("ws://example.com/feed", "example.com:80"),
        ("wss://example.com/feed", "example.com:443"),
        ("https://example.com:8443/", "example.com:8443"),
        ("https://EXAMPLE.com/", "example.com:443"),
        (URL("https://EXAMPLE.com/", encoded=True), "example.com:443"),
        ("https://user:secret@example.com/", "example.com:443"),
        ("http://127.0.0.1:8080/", "127.0.0.1:8080"),
        ("http://[::1]/", "[::1]:80"),
        ("http://[2001:DB8::1]:8080/", "[2001:db8::1]:8080"),
        ("http://bücher.example/", "xn--bcher-kva.example:80"),
    ],
)
def test_host_key_is_host_and_port(url, key):
    """A server has one key, whatever else the URL says and however it is written."""
    request = HttpRequest("GET", url)

    assert key == host_key(request)


def test_host_key_joins_the_base_url():
    """A relative URL belongs to the server of the session's base URL."""
    request = HttpRequest("GET", "/orders", base_url=URL("https://example.com/v1/"))

    assert "example.com:443" == host_key(request)


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("http://EXAMPLE.com", "example.com:80/"),
        ("http://example.com/", "example.com:80/"),
        ("https://user:secret@example.com/orders?page=2#top", "example.com:443/orders"),
        ("http://example.com/orders/", "example.com:80/orders/"),
        ("http://example.com/Größe", "example.com:80/Gr%C3%B6%C3%9Fe"),
        ("http://example.com/a%2Fb", "example.com:80/a%2Fb"),
        ("http://[::1]:8080/a/../orders", "[::1]:8080/orders"),
    ],
)
def test_path_key_is_the_path_on_the_wire(url, key):
    """The query and the fragment are no part of it, escapes are."""
    assert key == host_and_path_key(HttpRequest("GET", url))


def test_method_keys_are_upper_case():
    """A method has one key, however the caller writes it."""
    request = HttpRequest("get", "http://example.com/")

    assert "GET" == method_key(request)
    assert "example.com:80#GET" == host_and_method_key(request)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "/orders",
        "example.com",
        "http:///orders",
        "mailto:somebody@example.com",
        "http://[::1",
        "http://example.com:port/",
        URL("http://example.com:port/", encoded=True),
        "http://example.com:99999/",
        "unix://socket/orders",
        None,
        7,
        b"http://example.com/",
        object(),
    ],
)
@pytest.mark.parametrize("key", KEYS)
def test_a_url_without_host_and_port_has_no_key(key, url):
    """A key does not raise for a target before aiohttp refuses it."""
    request = HttpRequest("GET", url)

    assert None is key(request)


@pytest.mark.parametrize(
    "error", [ValueError("bad"), TypeError("bad"), RuntimeError("bad")]
)
@pytest.mark.parametrize("key", KEYS)
def test_a_url_that_raises_has_no_key(key, error):
    """The URL may raise; the key does not."""
    request = FailingRequest(error)

    assert None is key(request)


@pytest.mark.parametrize(
    ("target", "base_url"),
    [
        ("http://kept.example", None),
        ("http://kept.example/orders", None),
        ("http://user:secret@kept.example/", None),
        ("http://kept.example?page=2", None),
        ("http://kept.example#top", None),
        ("HTTP://kept.example/orders", None),
        (URL("http://kept.example/orders?page=2"), None),
        (URL("http://user:secret@kept.example/"), None),
        ("/orders", URL("http://kept.example/")),
        (URL("/orders"), URL("http://kept.example/")),
        (URL("orders"), URL("http://kept.example/")),
    ],
)
def test_one_server_has_one_key(target, base_url):
    """However a request names it, at first and from then on."""
    request = HttpRequest("GET", target, base_url=base_url)

    assert ["kept.example:80"] * 2 == [host_key(request), host_key(request)]


def test_url_that_begins_with_a_line_end_before_any_other():
    """It has the key of its server, though no server was met before."""
    key = host_key(HttpRequest("GET", "\nhttp://first.example/"))

    assert "first.example:80" == key


@pytest.mark.parametrize(
    ("target", "base_url"),
    [
        (URL("/orders"), None),
        (URL("//else.example/orders"), URL("http://base.example/")),
        (URL("mailto:orders@base.example"), URL("http://base.example/")),
    ],
)
def test_url_that_may_not_go_to_the_base(target, base_url):
    """It does not get the key of the base, where there is one."""
    host_key(HttpRequest("GET", "/", base_url=base_url))

    assert None is host_key(HttpRequest("GET", target, base_url=base_url))


def test_url_without_a_path_is_no_beginning_of_another():
    """Its last letter is not taken for the end of its origin."""
    for url in ("http://quick.example", "http://quick.example?to=http://other/"):
        host_key(HttpRequest("GET", url))

    assert "quick.exampl:80" == host_key(HttpRequest("GET", "http://quick.exampl/"))


class Written(str):
    """A text that aiohttp reads as another one."""

    def __str__(self):
        return "http://else.example/"


@pytest.mark.parametrize(
    ("target", "usual"),
    [
        ("//else.example:80/", "/orders"),
        ("/\t/else.example:80/", "/orders"),
        (Written("/orders"), "/orders"),
        (Written("http://other.example/"), "http://other.example/"),
    ],
)
def test_odd_target_leaves_other_keys_as_they_are(target, usual):
    """The key of one server is not kept for another, or for the base."""
    base_url = URL("http://base.example/")
    odd = host_key(HttpRequest("GET", target, base_url=base_url))

    assert "else.example:80" == odd
    assert odd != host_key(HttpRequest("GET", usual, base_url=base_url))


@pytest.mark.parametrize("target", ["http:///x", "http://\t/x", "http:////other/x"])
def test_absolute_url_without_a_host_has_the_key_of_its_own_base(target):
    """It goes to the base of the session, and sessions have different ones."""
    bases = [URL("http://one.example/"), URL("http://two.example/")]
    known = [host_key(HttpRequest("GET", target, base_url=base)) for base in bases]

    assert ["one.example:80", "two.example:80"] == known


@pytest.mark.parametrize("path", ["//else.example/", "/\t/else.example/", "/\n/else"])
def test_path_that_is_another_server_has_not_the_key_of_the_base(path):
    """A URL loses its tabs and line ends before it is read."""
    base = URL("http://base.example/")
    host_key(HttpRequest("GET", "/orders", base_url=base))

    assert host_key(HttpRequest("GET", path, base_url=base)) != "base.example:80"
