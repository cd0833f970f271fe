"""Which requests are for one of several servers, and their URLs.

Of the cases of endpoints.md (f): 15 to 19.
"""

from __future__ import annotations

import pytest
from yarl import URL

from aioretry_smithy import HttpRequest
from aioretry_smithy._request.endpoint import Service, joined, keep, path_after
from aioretry_smithy._request.keys import host_key


def service_of(url=None, origin=None):
    """Return the service whose URLs begin so."""
    return Service(
        "orders",
        lambda: None if url is None else URL(url),
        lambda: None if origin is None else URL(origin),
    )


class TestFind:
    """What a server of the service is asked for."""

    @pytest.mark.parametrize(
        ("target", "asked"),
        [
            ("/orders", "/orders"),
            ("orders", "/orders"),
            ("", "/"),
            ("?a=1", "/?a=1"),
            ("../orders/./7?a=%26#b", "/orders/7?a=%26#b"),
            ("/a/../../b", "/b"),
            (URL("/orders/%2F"), "/orders/%2F"),
            ("/orders?a=b%20c+d", "/orders?a=b%20c+d"),
        ],
    )
    def test_relative_url_is_for_it(self, target, asked):
        """Case 15: from the root, its dots resolved, nothing decoded."""
        found = service_of("http://a.example/").find(target)

        assert URL(asked, encoded=True) == found
        assert not found.absolute

    def test_any_number_of_paths_is_kept_in_bounds(self):
        """Case 142: what was found of each is found anew."""
        service = service_of("http://a.example/")
        for number in range(2500):
            service.find(f"/{number}")

        assert len(service._found) <= 1024

    @pytest.mark.parametrize(
        "target",
        [
            "http://c.example/orders",
            "https://a.example/",
            "http://a.example:81/",
            "mailto:a",
        ],
    )
    @pytest.mark.parametrize("origin", [None, "http://a.example/"])
    def test_url_of_another_origin_is_not(self, target, origin):
        """Case 18: scheme, host and port are the origin."""
        assert service_of("http://a.example/", origin).find(target) is None

    @pytest.mark.parametrize("target", ["http://A.example:80/x", "ws://a.example/x"])
    def test_absolute_url_is_where_all_have_that_origin(self, target):
        """Case 19: letters, default ports and websockets make no difference."""
        assert URL(target) == service_of(None, "http://a.example/").find(target)
        assert service_of("http://a.example/").find(target) is None

    @pytest.mark.parametrize(
        "target", [None, 7, ["/x"], "http://a.example:port/", "http://[::1/"]
    )
    def test_what_is_no_url_is_not(self, target):
        """That is aiohttp's to report."""
        assert service_of("http://a.example/", "http://a.example/").find(target) is None

    def test_origin_is_looked_up_again_after_a_change(self):
        """Until then what was found is kept."""
        origins = [URL("http://a.example/")]
        service = Service("orders", lambda: None, lambda: origins[-1])
        first = service.find("http://b.example/x")
        origins.append(URL("http://b.example/"))

        assert [None, None] == [first, service.find("http://b.example/x")]
        service.forget()
        assert URL("http://b.example/x") == service.find("http://b.example/x")


class TestJoin:
    """URLs as they are shown, and as servers are asked."""

    @pytest.mark.parametrize(
        ("base", "path", "url"),
        [
            ("http://a.example/", "/orders", "http://a.example/orders"),
            ("http://a.example/v1/", "/orders", "http://a.example/v1/orders"),
            (
                "http://a.example/v1/",
                "orders?a=1#b",
                "http://a.example/v1/orders?a=1#b",
            ),
            (
                "http://a.example/v%2F1/",
                "/%2e%2F?a=%2B",
                "http://a.example/v%2F1/%2e%2F?a=%2B",
            ),
            ("http://[::1]:8080/", "/x", "http://[::1]:8080/x"),
            ("http://a.example/v1/", "/", "http://a.example/v1/"),
        ],
    )
    def test_path_comes_after_the_base(self, base, path, url):
        """Cases 16 and 17: prefix and query are kept, as they were written."""
        made = joined(URL(base, encoded=True), URL(path, encoded=True))

        assert url == str(made)

    def test_service_joins_what_is_shown(self):
        """Its dots do not lead out of the base."""
        service = service_of("http://a.example/v1/")

        assert URL("http://a.example/v1/b") == service.join(URL("/a/../../../b"))

    def test_without_a_base_it_is_shown_as_it_is(self):
        """Before there is a first list."""
        assert URL("../b") == service_of().join(URL("../b"))

    @pytest.mark.parametrize(
        ("url", "path"),
        [
            ("http://a.example/v1/orders?a=1#b", "/orders?a=1#b"),
            ("http://A.example:80/v1/", "/"),
            ("http://a.example/v1", None),
            ("http://a.example/v2/orders", None),
            ("http://b.example/v1/orders", None),
            ("https://a.example/v1/orders", None),
        ],
    )
    def test_path_after_the_base_is_found_again(self, url, path):
        """The other way round; None where it does not begin so."""
        found = path_after(URL("http://a.example/v1/"), URL(url))

        assert path == (None if found is None else str(found))


class TestRenamed:
    """Targets that take the place of others."""

    @pytest.mark.parametrize(
        ("base", "before", "target", "expected"),
        [
            ("http://a.example/v1/", "/x", "http://a.example/v1/y", URL("/y")),
            (
                "http://a.example/v1/",
                "/x",
                "http://b.example/v1/y",
                "http://b.example/v1/y",
            ),
            ("http://a.example/v1/", "/x", "/y", "/y"),
            (
                "http://a.example/v1/",
                "http://c.example/x",
                "http://a.example/v1/y",
                "http://a.example/v1/y",
            ),
            ("http://a.example/v1/", "/x", "http://a:port/", "http://a:port/"),
            ("http://a.example/v1/", "/x", 7, 7),
            (None, "/x", "http://a.example/v1/y", "http://a.example/v1/y"),
        ],
    )
    def test_one_that_begins_as_shown_stays_the_services(
        self, base, before, target, expected
    ):
        """Only where the request was the service's before."""
        assert expected == service_of(base).renamed(before, target)


def test_kept_values_are_bounded():
    """Any number of targets may be asked for; each value can be made anew."""
    values = {}
    for number in range(1025):
        keep(values, number, -number)

    assert {1024: -1024} == values


def test_service_is_shown_by_its_key():
    """It has no other name."""
    assert "Service('orders')" == repr(service_of())


@pytest.mark.parametrize(
    ("target", "key"),
    [("/orders", "orders"), ("http://other.example/", "other.example:80")],
)
def test_key_is_the_services_for_its_requests_alone(target, key):
    """Others are named by their host."""
    service = service_of("http://a.example/")

    assert key == host_key(HttpRequest("GET", target, base_url=service))
