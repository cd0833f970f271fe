"""The servers that may see what is added to requests: by origin, by name, no others."""

from __future__ import annotations

import pytest
from chains import bad_argument
from yarl import URL

from aioretry_smithy import Endpoint, EndpointGroup, HttpRequest, LoadBalancingClient
from aioretry_smithy._request.keys import OwnHosts
from aioretry_smithy._request.request import RoutedRequest
from aioretry_smithy.testing import ScriptedTransport

BASE = URL("http://localhost:8080/v1/")
EXPECTED = (
    'hosts such as ["api.example.com"], with a port or a scheme if need be, or None'
)


def has(hosts, url, base=BASE):
    return OwnHosts(hosts).have(HttpRequest("GET", url, base_url=base), base)


def service_of(group):
    """Return what tells the requests of a group from others."""
    decorator = LoadBalancingClient.new_decorator(group)
    return decorator(ScriptedTransport([])).service


class TestOfTheSession:
    """Unless hosts are named, the origin of the base URL."""

    @pytest.mark.parametrize(
        ("url", "is_own"),
        [
            ("orders", True),
            ("/orders", True),
            ("http://localhost:8080/", True),
            ("http://LOCALHOST:8080/", True),
            ("http://me:pw@localhost:8080/", True),
            ("ws://localhost:8080/", True),
            ("http://localhost/", False),
            ("https://localhost:8080/", False),
            ("http://localhost.evil.example:8080/", False),
            ("http://evil.example:8080/", False),
            ("//evil.example/", False),
            ("http://localhost:8080@evil.example/", False),
            ("http://[bad/", False),
        ],
    )
    def test_request_is_own_by_its_origin(self, url, is_own):
        """By scheme, host and port; the path does not matter."""
        assert is_own == has(None, url)

    def test_relative_url_made_by_hand_goes_to_the_base(self):
        """A decorator's own request does not know it; aiohttp joins it."""
        request = HttpRequest("GET", "/orders")

        assert OwnHosts(None).have(request, BASE)
        assert OwnHosts(["localhost:8080"]).have(request, BASE)
        assert not OwnHosts(["localhost:8081"]).have(request, BASE)

    def test_without_a_base_nothing_is_own(self):
        """The call of a function, or a context that a test has made."""
        assert not has(None, "http://localhost:8080/", None)


class TestOfAGroup:
    """The requests that a group serves."""

    group = EndpointGroup.of("http://a.example", "http://b.example")

    def test_what_is_balanced_is_own(self):
        """A relative URL, but no absolute one where there are several origins."""
        service = service_of(self.group)

        assert has(None, "/orders", service)
        assert not has(None, "http://c.example/orders", service)

    def test_endpoint_that_was_chosen_is_own(self):
        """That of this group; not one of another group in the chain."""
        service = service_of(self.group)
        request = HttpRequest("GET", "/orders", base_url=service)

        class Chosen:
            endpoint = Endpoint("http://a.example")
            key = "a.example:80"
            service_key = service.key
            middleware = None

        routed = RoutedRequest.to(Chosen(), URL("http://a.example/orders"), request)
        assert OwnHosts(None).have(routed, service)
        Chosen.service_key = "another"
        assert not OwnHosts(None).have(routed, service)

    def test_named_hosts_are_compared_with_the_endpoint(self):
        """Before one is chosen nobody knows; then its URL is looked at."""
        service = service_of(self.group)
        hosts = OwnHosts(["http://a.example"])

        assert hosts.have(HttpRequest("GET", "/orders", base_url=service), service)
        assert hosts.allow(URL("http://a.example/orders"), service)
        assert not hosts.allow(URL("http://b.example/orders"), service)

    def test_bare_host_may_have_the_scheme_of_the_group(self):
        """Which is known where its URLs have one beginning."""
        service = service_of(EndpointGroup.of("http://a.example"))
        empty = service_of(self.group.or_else(self.group.of("https://c.example")))

        assert OwnHosts(["b.example"]).allow(URL("http://b.example/"), service)
        assert OwnHosts(["b.example"]).allow(URL("https://b.example/"), empty)


class TestNamed:
    """Hosts in place of the session's own."""

    @pytest.mark.parametrize(
        ("host", "url", "is_own"),
        [
            ("api.example.com", "https://api.example.com/", True),
            ("api.example.com", "https://API.example.com:443/", True),
            ("API.example.com", "https://api.example.com/", True),
            ("api.example.com", "http://api.example.com/", True),
            ("api.example.com", "https://api.example.com:8443/", False),
            ("api.example.com", "http://api.example.com:443/", False),
            ("api.example.com", "https://eu.api.example.com/", False),
            ("api.example.com", "https://example.com/", False),
            ("api.example.com", "ftp://api.example.com/", False),
            ("api.example.com", "http://localhost:8080/", False),
            ("api.example.com", "/orders", False),
            ("api.example.com", "http://[bad/", False),
            ("api.example.com:8443", "https://api.example.com:8443/", True),
            ("api.example.com:8443", "https://api.example.com/", False),
            ("https://api.example.com", "https://api.example.com/orders", True),
            ("https://api.example.com", "http://api.example.com/orders", False),
            ("https://api.example.com/", "https://api.example.com/", True),
            ("http://api.example.com:81", "http://api.example.com:81/", True),
            (URL("https://api.example.com"), "https://api.example.com/", True),
            ("[::1]:8080", "http://[::1]:8080/", True),
            ("[::1]", "https://[::1]/", True),
            ("127.0.0.1", "https://127.0.0.1/", True),
            ("bücher.example", "https://xn--bcher-kva.example/", True),
            ("localhost:8080", "/orders", True),
        ],
    )
    def test_host_is_matched_whole(self, host, url, is_own):
        """With https, or the session's own scheme, where it names none."""
        assert is_own == has([host], url)

    def test_bare_host_means_https_without_a_base(self):
        """No scheme is known that would allow more."""
        assert has(["api.example.com"], "https://api.example.com/", None)
        assert not has(["api.example.com"], "http://api.example.com/", None)

    @pytest.mark.parametrize(
        "hosts",
        [
            "api.example.com",
            b"api.example.com",
            7,
            (),
            [None],
            [7],
            [""],
            ["api.example.com/v1"],
            ["api.example.com?a=1"],
            ["api.example.com#a"],
            ["api example.com"],
            ["api.example.com\r\nX: 1"],
            ["api.example.com\n"],
            ["api.example.com:"],
            ["api.example.com:80:80"],
            ["api.example.com:x"],
            ["[::1"],
        ],
    )
    def test_others_are_refused(self, hosts):
        """What is no host, and a single text, whose letters would be hosts."""
        shown = hosts if isinstance(hosts, str | bytes | int) or not hosts else hosts[0]
        with bad_argument("hosts", shown, EXPECTED):
            OwnHosts(hosts)

    @pytest.mark.parametrize(
        "host",
        ["me:pw@api.example.com", "ftp://api.example.com", "https://a.example/b"],
    )
    def test_secret_or_other_scheme_is_refused(self, host):
        """The message does not show what may be a password."""
        with pytest.raises(ValueError, match=r"\Ahosts: ") as caught:
            OwnHosts([host])

        assert "pw" not in str(caught.value)

    def test_wildcard_is_refused_with_a_hint(self):
        """Each host is to be named."""
        with bad_argument("hosts", "*.example.com", f"{EXPECTED}; each one by name"):
            OwnHosts(["*.example.com"])
