"""A request for one of several servers, and its copies."""

from __future__ import annotations

import pytest
from yarl import URL

from aioretry_smithy import Endpoint, HttpRequest
from aioretry_smithy._request.keys import host_key, service_key
from aioretry_smithy._request.request import RoutedRequest


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


def test_shows_itself_as_any_request():
    """Without what is secret."""
    assert "<HttpRequest POST http://a.example/v1/orders>" == repr(routed())


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
