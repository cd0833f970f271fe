"""Keys of requests, a value for each, and the servers that are one's own."""

import pytest
from chains import bad_argument
from yarl import URL

from aioretry_smithy import Endpoint, EndpointGroup, HttpRequest, LoadBalancingClient
from aioretry_smithy._request.keys import (
    OneForAll,
    OwnHosts,
    PerKey,
    host_and_method_key,
    host_and_path_key,
    host_key,
    method_key,
)
from aioretry_smithy._request.request import RoutedRequest
from aioretry_smithy.testing import ScriptedTransport

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


HERE = HttpRequest("GET", URL("http://here.test/a"))
THERE = HttpRequest("POST", URL("http://there.test/b"))
NOWHERE = HttpRequest("GET", URL("/a"))


def per(key):
    return PerKey("key", key, list, list)


def test_one_for_all_is_found_for_every_request():
    """It needs no key, so that a request without a host has it too."""
    value = []
    only = OneForAll("all", value)

    assert [value] * 2 == [only.of(HERE), only.of(NOWHERE)]
    assert {"all": value} == only.in_use()


def test_each_key_has_a_value_of_its_own():
    """Two requests with the same key meet the same value."""
    values = per(host_key)

    assert values.of(HERE) is values.of(HERE)
    assert values.of(HERE) is not values.of(THERE)
    assert ["here.test:80", "there.test:80"] == sorted(values.in_use())


def test_a_value_of_another_class_is_refused():
    """The error names the function that the user passed."""
    values = PerKey("host", host_key, str, str, list)

    with pytest.raises(ValueError, match=r"^factory.*: .*\(expected: a list\)"):
        values.of(HERE)


@pytest.mark.parametrize(
    "url",
    [
        "http://here.test.evil/a",
        "http://here.test:8080/a",
        "http://here.test@there.test/a",
        "https://here.test/a",
    ],
)
def test_a_url_that_begins_like_the_newest_has_another_value(url):
    """The host met last is known by how its URLs begin, up to the slash."""
    values = per(host_key)
    newest = values.of(HttpRequest("GET", "http://here.test/a"))

    assert newest is values.of(HttpRequest("GET", "http://here.test/b"))
    assert newest is not values.of(HttpRequest("GET", url))


def test_keys_of_ones_own_are_asked_for_each_request():
    """Only a key by host is told by how a URL begins."""
    values = per(lambda request: request.target)
    one, other = (HttpRequest("GET", f"http://here.test/{path}") for path in "ab")

    assert values.of(one) is not values.of(other)


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
