"""Endpoints, and the requests that are for one of several."""

import copy
import ipaddress
import math
import pickle

import pytest
from chains import bad_argument
from yarl import URL

from aioretry_smithy import Endpoint, HttpRequest
from aioretry_smithy._request.endpoint import Service, joined, keep, path_after
from aioretry_smithy._request.keys import host_key

PORTS = [
    ("http://a.example", "a.example:80"),
    ("https://a.example", "a.example:443"),
    ("http://a.example:8080", "a.example:8080"),
    ("http://[2001:db8::1]", "[2001:db8::1]:80"),
    ("http://[2001:db8::1]:8080/v1", "[2001:db8::1]:8080"),
]


class TestUrl:
    """What the URLs of an endpoint begin with."""

    @pytest.mark.parametrize(
        ("given", "expected"),
        [
            ("", "with a scheme, such as 'https://example.com'"),
            ("///", "with a scheme, such as 'https://example.com'"),
            ("a.example", "with a scheme, such as 'http://a.example'"),
            ("a.example:8080/v1/", "with a scheme, such as 'http://a.example:8080/v1'"),
            ("//a.example", "with a scheme, such as 'http://a.example'"),
            (URL("/orders"), "http:// or https://, and a host"),
            (URL("a.example"), "http:// or https://, and a host"),
            ("ftp://a.example", "http:// or https://, and a host"),
            ("http:///orders", "http:// or https://, and a host"),
            ("http://a.example?a=1", "without query and fragment: 'http://a.example/'"),
            (
                "http://a.example/v1?",
                "without query and fragment: 'http://a.example/v1'",
            ),
            ("http://a.example/#b", "without query and fragment: 'http://a.example/'"),
            (
                URL("http://a.example/#b"),
                "without query and fragment: 'http://a.example/'",
            ),
            ("http://[fe80::1%25eth0]", "a host without a zone"),
            (None, "a str or a yarl.URL"),
            (b"http://a.example", "a str or a yarl.URL"),
        ],
    )
    def test_one_that_is_none_is_refused_with_what_to_write(self, given, expected):
        """Case 4: no scheme, no host, a query or a fragment."""
        with pytest.raises(ValueError, match=r"^url: ") as raised:
            Endpoint(given)

        assert str(raised.value).endswith(f" (expected: {expected})")

    @pytest.mark.parametrize("given", ["http://a.example:port", "http://[::1"])
    def test_one_that_cannot_be_read_is_refused(self, given):
        """Case 4: the words of the parser follow."""
        with pytest.raises(ValueError, match=r"^url: .* \(expected: a URL: "):
            Endpoint(given)

    @pytest.mark.parametrize(
        "given", ["http://us%65r:secret@a.example/v1", "http://user@a.example/v1"]
    )
    def test_credentials_are_refused_and_not_shown(self, given):
        """Case 4: they belong to the session, and not into an error."""
        with pytest.raises(ValueError, match="without credentials") as raised:
            Endpoint(given)

        assert "'http://a.example/v1', and auth= of the session" in str(raised.value)
        assert "secret" not in str(raised.value)

    @pytest.mark.parametrize(
        "given", ["user:secret@a.example", "a.example?token=secret"]
    )
    def test_secrets_are_not_shown_where_the_scheme_is_missing(self, given):
        """Case 4: what to write is shown without them."""
        with pytest.raises(ValueError, match="with a scheme") as raised:
            Endpoint(given)

        assert "secret" not in str(raised.value)

    @pytest.mark.parametrize(
        ("given", "url"),
        [
            ("http://a.example", "http://a.example/"),
            ("http://a.example/v1", "http://a.example/v1/"),
            ("http://a.example/v%2F1", "http://a.example/v%2F1/"),
            (URL("wss://a.example/v1/"), "wss://a.example/v1/"),
        ],
    )
    def test_ends_in_a_slash(self, given, url):
        """So that a path can be put after it."""
        assert URL(url, encoded=True) == Endpoint(given).url


class TestEquality:
    """Which endpoints are one."""

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            (Endpoint("http://a.example"), Endpoint("http://A.Example")),
            (Endpoint("http://a.example"), Endpoint("http://a.example:80/")),
            (Endpoint("https://a.example:443/v1"), Endpoint("https://a.example/v1/")),
            (Endpoint("http://a.example"), Endpoint("http://a.example", weight=7)),
            (Endpoint("http://a.example"), Endpoint("ws://a.example")),
            (
                Endpoint("http://bücher.example"),
                Endpoint("http://xn--bcher-kva.example"),
            ),
            (
                Endpoint("http://a.example", address="::ffff:10.0.0.3"),
                Endpoint("http://a.example", address="10.0.0.3"),
            ),
            (
                Endpoint("http://a.example", address="2001:DB8::0:1"),
                Endpoint(
                    "http://a.example", address=ipaddress.ip_address("2001:db8::1")
                ),
            ),
            (Endpoint("http://[2001:DB8::1]"), Endpoint("http://[2001:db8::1]:80")),
        ],
    )
    def test_same_server_is_one(self, one, other):
        """Cases 8 to 12: letters, default ports, weights, IPv6 and IDN hosts."""
        assert one == other
        assert hash(one) == hash(other)

    @pytest.mark.parametrize(
        "other",
        [
            Endpoint("https://a.example"),
            Endpoint("http://b.example"),
            Endpoint("http://a.example:8080"),
            Endpoint("http://a.example/v1"),
            Endpoint("http://a.example", address="10.0.0.3"),
            "http://a.example",
        ],
    )
    def test_another_server_is_another(self, other):
        """Scheme, host, port, path and address tell them apart."""
        assert Endpoint("http://a.example") != other

    def test_nothing_of_it_can_be_changed(self):
        """It is a key of mappings."""
        with pytest.raises(AttributeError, match="weight"):
            Endpoint("http://a.example").weight = 2.0


class TestAddress:
    """Where the connections of an endpoint go."""

    @pytest.mark.parametrize(
        "given", ["a.example", "10.0.0.3:80", "", 7, b"\x7f\0\0\1"]
    )
    def test_name_is_refused(self, given):
        """What is looked up belongs into the URL; ``ip_address(7)`` is no address."""
        expected = "an IP address; a name belongs into url"
        with bad_argument("address", given, expected):
            Endpoint("http://a.example", address=given)

    def test_zone_is_refused(self):
        """It means nothing on another machine."""
        with bad_argument("address", "fe80::1%eth0", "without a zone"):
            Endpoint("http://a.example", address="fe80::1%eth0")


class TestWeight:
    """The share of an endpoint."""

    @pytest.mark.parametrize("given", [-1, -0.1, math.nan, math.inf, "1", None])
    def test_bad_one_is_refused(self, given):
        """Case 5: below 0, and what is no number."""
        with bad_argument("weight", given, "finite and >= 0"):
            Endpoint("http://a.example", weight=given)


class TestText:
    """An endpoint in logs, keys and descriptions."""

    @pytest.mark.parametrize(("given", "key"), PORTS)
    def test_key_names_host_and_port(self, given, key):
        """Case 9: with the port that the scheme implies, IPv6 in brackets."""
        assert key == Endpoint(given).key

    @pytest.mark.parametrize(
        ("endpoint", "text"),
        [
            (Endpoint("http://A.example"), "a.example"),
            (Endpoint("http://a.example:8080/v1/"), "a.example:8080/v1"),
            (Endpoint("http://[2001:db8::1]:8080"), "[2001:db8::1]:8080"),
            (Endpoint("https://a.example", address="10.0.0.3"), "10.0.0.3:443"),
            (Endpoint("http://a.example:81", address="::1"), "[::1]:81"),
        ],
    )
    def test_text_is_where_it_is(self, endpoint, text):
        """Case 9: an address goes before the name."""
        assert text == str(endpoint)
        if endpoint.address is not None:
            assert text == endpoint.key

    @pytest.mark.parametrize(
        "way", [copy.copy, copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))]
    )
    def test_can_be_copied(self, way):
        """A copy is equal, its weight too."""
        endpoint = Endpoint("http://a.example/v1", address="10.0.0.3", weight=2)

        copied = way(endpoint)

        assert (endpoint, 2.0) == (copied, copied.weight)


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
