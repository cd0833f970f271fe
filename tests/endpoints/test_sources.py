"""The addresses that a name stands for, and where else a group has its endpoints from.

Of the cases of endpoints.md (f): 19, 114 (that groups are made so).
"""

import asyncio
import ipaddress
import logging
import math
import socket
from types import SimpleNamespace

import pytest
from balanced import Fleet, call
from chains import bad_argument, in_virtual_time, now, raises_exactly
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from aioretry_smithy import Endpoint, EndpointGroup
from aioretry_smithy._endpoints.discovery import Answer, Discovery, Listed
from aioretry_smithy._endpoints.sources import DnsLookup

SERVICE = "http://orders.example.com:8080"
NO_LIST = "returns a list of (address, ttl), as an async function"
NO_ADDRESS = "returns IP addresses, as text or objects of ipaddress"


def resolver(*answer):
    """Answer so, whatever is asked."""

    async def resolve(host, port):
        return [each if isinstance(each, tuple) else (each, 30) for each in answer]

    return resolve


def returning(answer):
    """Return what is no answer."""

    async def resolve(host, port):
        return answer

    return resolve


class System:
    """Stands for what the system knows of names."""

    def __init__(self, *answer, seconds=0.0):
        self.answer = answer
        self.seconds = seconds
        self.asked = []

    async def __call__(self, host, port, **settings):
        self.asked.append((host, port, settings))
        await asyncio.sleep(self.seconds)
        (first, *_) = [*self.answer, None]
        if isinstance(first, Exception):
            raise first
        return [
            (None, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", where)
            for where in self.answer
        ]


@pytest.fixture
def system(monkeypatch):
    """Ask this in place of the system."""

    def install(*answer, **settings):
        made = System(*answer, **settings)
        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", made)
        return made

    return install


def ranked(answer):
    """Return the addresses of an answer with their ranks."""
    return [(each.endpoint.address, each.rank) for each in answer.listed]


async def addresses(*answer, **settings):
    """Return the addresses that are taken of a resolver's answer."""
    lookup = DnsLookup(SERVICE, resolver=resolver(*answer), **settings)
    return [address for address, _ in ranked(await lookup())]


class TestSystem:
    """The system is asked, as it is by any other program."""

    async def test_each_address_is_an_endpoint_of_the_service(self, system):
        """Its URLs are the service's; how long the answer holds is unknown."""
        system(("10.0.0.3", 8080), ("10.0.0.7", 8080))
        answer = await DnsLookup("http://orders:8080/v1")()

        assert ["10.0.0.3:8080", "10.0.0.7:8080"] == [
            str(each.endpoint) for each in answer.listed
        ]
        assert {URL("http://orders:8080/v1/")} == {
            each.endpoint.url for each in answer.listed
        }
        assert answer.ttl is None

    @pytest.mark.parametrize(
        ("family", "asked"),
        [
            ("prefer_ipv4", socket.AF_UNSPEC),
            ("any", socket.AF_UNSPEC),
            ("ipv4", socket.AF_INET),
            ("ipv6", socket.AF_INET6),
        ],
    )
    async def test_only_addresses_that_this_machine_can_use_are_asked_for(
        self, system, family, asked
    ):
        """Those for TCP, of the families that it has, and that are wanted."""
        known = system()
        await DnsLookup("https://Orders.Example.com.", family=family)()
        settings = {
            "family": asked,
            "type": socket.SOCK_STREAM,
            "proto": socket.IPPROTO_TCP,
            "flags": socket.AI_ADDRCONFIG,
        }

        assert [("orders.example.com.", 443, settings)] == known.asked

    async def test_name_beyond_ascii_is_asked_for_as_dns_writes_it(self, system):
        """The system need not know how."""
        known = system()
        await DnsLookup("http://bücher.example")()

        assert "xn--bcher-kva.example" == known.asked[0][0]

    @pytest.mark.parametrize("name", ["EAI_NONAME", "EAI_NODATA", "EAI_ADDRFAMILY"])
    async def test_name_without_addresses_is_an_empty_answer(self, system, name):
        """The question was answered."""
        if not hasattr(socket, name):
            pytest.skip(f"the system has no {name}")
        system(socket.gaierror(getattr(socket, name), "no"))

        assert Answer(()) == await DnsLookup(SERVICE)()

    @pytest.mark.parametrize("name", ["EAI_AGAIN", "EAI_FAIL"])
    async def test_other_errors_are_no_answer(self, system, name):
        """They say nothing about the name."""
        system(socket.gaierror(getattr(socket, name), "later"))

        with raises_exactly(f"[Errno {getattr(socket, name)}] later", socket.gaierror):
            await DnsLookup(SERVICE)()

    async def test_addresses_with_a_zone_are_left_out(self, system):
        """Of all that IPv6 says, the zone comes last."""
        system(
            ("fe80::1", 8080, 0, 2),
            ("fe80::2%eth0", 8080, 0, 0),
            ("2001:db8::1", 8080, 0, 0),
        )

        assert [("2001:db8::1", 0)] == ranked(await DnsLookup(SERVICE)())

    async def test_name_of_this_machine_is_found(self):
        """The file of hosts counts; no DNS is asked."""
        found = ranked(await DnsLookup("http://localhost")())

        assert {address for address, _ in found} & {"127.0.0.1", "::1"}

    async def test_query_that_hangs_is_not_asked_beside(self, system):
        """It occupies a thread; its late answer counts."""
        known = system(("10.0.0.3", 8080), seconds=40.0)
        heard = []
        lookup = DnsLookup(SERVICE)
        roster = SimpleNamespace(set_listed=heard.append, note_failed_query=str)
        discovery = Discovery(lookup, roster)
        for _ in range(41):
            assert discovery.use(now()) is False
            await asyncio.sleep(1.0)

        assert discovery.use(now()) is True
        assert 1 == len(known.asked)
        assert ["10.0.0.3:8080"] == [str(each.endpoint) for (each,) in heard]


class TestAddresses:
    """What is not to be connected to is left out."""

    async def test_ipv4_within_ipv6_is_ipv4(self):
        """It is the same machine."""
        mapped = ipaddress.ip_address("::ffff:10.0.0.4")

        assert ["10.0.0.3", "10.0.0.4"] == await addresses("::ffff:10.0.0.3", mapped)

    async def test_addresses_of_no_machine_are_left_out(self):
        """Nor is a zone of this machine's anything for a list."""
        none = ("0.0.0.0", "::", "::ffff:0.0.0.0", "fe80::1%eth0")

        assert ["10.0.0.3"] == await addresses(*none, "10.0.0.3")
        assert [] == await addresses(*none)

    @pytest.mark.parametrize(
        ("family", "expected"),
        [
            ("prefer_ipv4", [("::1", 1), ("10.0.0.3", 0), ("2001:db8::1", 1)]),
            ("ipv4", [("10.0.0.3", 0)]),
            ("ipv6", [("::1", 0), ("2001:db8::1", 0)]),
            ("any", [("::1", 0), ("10.0.0.3", 0), ("2001:db8::1", 0)]),
        ],
    )
    async def test_ipv6_ranks_below_ipv4(self, family, expected):
        """Unless something else is wanted."""
        answer = resolver("::1", "::ffff:10.0.0.3", "2001:db8::1")
        lookup = DnsLookup(SERVICE, resolver=answer, family=family)

        assert expected == ranked(await lookup())

    async def test_ipv6_alone_is_no_lower_rank(self):
        """There is nothing to prefer."""
        answer = await DnsLookup(SERVICE, resolver=resolver("::1"))()

        assert [("::1", 0)] == ranked(answer)

    @given(st.lists(st.ip_addresses()))
    def test_any_addresses_are_endpoints(self, given):
        """Whichever there are, all that remain can be connected to."""
        found = in_virtual_time(addresses(*given))

        assert {str(ipaddress.ip_address(each)) for each in found} == {*found}
        assert len(found) <= len(given)


class TestAddressAsHost:
    """A host that is an address needs nobody to ask."""

    @pytest.mark.parametrize(
        ("url", "address"),
        [
            ("http://10.0.0.3:8080", "10.0.0.3"),
            ("http://[2001:db8::1]:8080", "2001:db8::1"),
            ("http://[::ffff:10.0.0.3]", "10.0.0.3"),
        ],
    )
    def test_is_the_one_endpoint(self, url, address):
        """Whatever family is wanted, and for good."""
        asked = []
        lookup = DnsLookup(url, family="ipv6", resolver=asked.append)

        assert [address] == [each.endpoint.address for each in lookup.known]
        assert [] == asked

    def test_name_is_none(self):
        """Somebody has to be asked."""
        assert DnsLookup(SERVICE).known is None


class TestResolver:
    """A resolver of the user's is asked in place of the system."""

    async def test_smallest_time_to_live_counts(self):
        """Also that of an address that is left out."""
        answer = resolver(("10.0.0.3", 30), ("10.0.0.4", 20.5), ("::", 15))
        found = await DnsLookup(SERVICE, resolver=answer)()

        assert 15 == found.ttl
        assert 2 == len(found.listed)

    async def test_gets_host_and_port(self):
        """As the URL has them."""
        asked = []

        async def resolve(host, port):
            asked.append((host, port))
            return ()

        answer = await DnsLookup("https://orders.example.com", resolver=resolve)()

        assert [("orders.example.com", 443)] == asked
        assert Answer(()) == answer

    async def test_what_it_raises_is_no_answer(self):
        """It goes to whoever asked, as it is."""

        async def resolve(host, port):
            raise ValueError("of its own")

        with raises_exactly("of its own"):
            await DnsLookup(SERVICE, resolver=resolve)()

    async def test_may_be_cut(self):
        """The system may not."""
        assert DnsLookup(SERVICE, resolver=resolver()).is_cancellable is True
        assert DnsLookup(SERVICE).is_cancellable is False

    @pytest.mark.parametrize(
        ("answer", "wrong", "expected"),
        [
            (None, None, NO_LIST),
            ("10.0.0.3", "10.0.0.3", NO_LIST),
            ({"10.0.0.3": 30}, {"10.0.0.3": 30}, NO_LIST),
            (["10.0.0.3"], "10.0.0.3", "returns pairs of address and ttl"),
            ([("10.0.0.3",)], ("10.0.0.3",), "returns pairs of address and ttl"),
            ([("::1", "30")], "30", "returns each ttl finite and >= 0"),
            ([("::1", None)], None, "returns each ttl finite and >= 0"),
            ([("::1", -1)], -1, "returns each ttl finite and >= 0"),
            ([("::1", math.nan)], math.nan, "returns each ttl finite and >= 0"),
            ([("orders", 30)], "orders", NO_ADDRESS),
            ([("10.0.0.256", 30)], "10.0.0.256", NO_ADDRESS),
            ([(7, 30)], 7, NO_ADDRESS),
            ([(b"\x0a\x00\x00\x03", 30)], b"\x0a\x00\x00\x03", NO_ADDRESS),
        ],
    )
    async def test_bad_answer_is_told_from_a_good_one(self, answer, wrong, expected):
        """The error says what is wrong with it."""
        lookup = DnsLookup(SERVICE, resolver=returning(answer))

        with bad_argument("resolver", wrong, expected):
            await lookup()

    async def test_plain_function_is_no_resolver(self):
        """It would hold up the event loop."""
        lookup = DnsLookup(SERVICE, resolver=lambda host, port: [])

        with bad_argument("resolver", [], NO_LIST):
            await lookup()

    async def test_bad_answer_is_logged_once(self, caplog):
        """It is asked for again and again."""
        answers = iter([[(1, 30)], [(1, 30)], [(2, 30)], [("::1", 30)]])

        async def resolve(host, port):
            return next(answers)

        lookup = DnsLookup(SERVICE, resolver=resolve)
        with caplog.at_level(logging.WARNING, "aioretry_smithy"):
            for _ in range(3):
                with pytest.raises(ValueError):
                    await lookup()
            await lookup()
        what = f"orders.example.com:8080: resolver: %d (expected: {NO_ADDRESS})"

        assert [what % 1, what % 2] == caplog.messages

    async def test_log_does_not_grow_without_end(self, caplog):
        """A resolver may be wrong in another way each time."""
        numbers = iter(range(1000))

        async def resolve(host, port):
            return [(next(numbers), 30)]

        lookup = DnsLookup(SERVICE, resolver=resolve)
        for _ in range(200):
            with pytest.raises(ValueError):
                await lookup()

        assert 100 == len(caplog.messages)


class TestArguments:
    """What cannot be meant is refused."""

    def test_bad_family(self):
        """The error lists those that there are."""
        families = "one of ['prefer_ipv4', 'ipv4', 'ipv6', 'any']"
        with bad_argument("family", "ipv5", families):
            DnsLookup(SERVICE, family="ipv5")

    def test_bad_resolver(self):
        """It is a function."""
        expected = "an async function of host and port, or None"
        with bad_argument("resolver", 7, expected):
            DnsLookup(SERVICE, resolver=7)

    def test_bad_url(self):
        """It is one of an endpoint."""
        expected = "with a scheme, such as 'http://orders:8080'"
        with bad_argument("url", "orders:8080", expected):
            DnsLookup("orders:8080")


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("http://A.example", "http://a.example"),
        ("http://a.example:8080/v1", "http://a.example:8080/v1/"),
    ],
)
def test_name_is_the_origin_and_the_prefix(url, name):
    """And all that its description begins with."""
    group = EndpointGroup.dns(url)

    assert name == group.name
    assert repr(group).startswith(f"EndpointGroup.dns({name!r}, selection=")
    assert () == group.endpoints


def test_services_of_records_have_their_name():
    """Their URLs begin with those of the endpoints, once there are any."""
    pytest.importorskip("dns", reason="needs the extra dns")
    group = EndpointGroup.srv("_http._tcp.orders.example.com")

    assert "_http._tcp.orders.example.com" == group.name
    assert "https://endpoints.invalid/" == str(group.placeholder)
    assert repr(group).startswith("EndpointGroup.srv('_http._tcp.orders.example.com', ")


async def test_absolute_url_of_the_name_is_balanced():
    """Case 19: its addresses have one origin."""
    fleet = Fleet()
    async with fleet.session(EndpointGroup.dns("http://10.0.0.3")) as client:
        _, ours = await call(client, "http://10.0.0.3/x")
        _, other = await call(client, "http://10.0.0.4/x")

    assert ["10.0.0.3:80", None] == [ours.endpoint, other.endpoint]


async def test_url_of_a_service_of_records_begins_with_the_first_endpoint():
    """As soon as there is a list."""
    pytest.importorskip("dns", reason="needs the extra dns")
    group = EndpointGroup.srv("_http._tcp.orders.example.com")
    roster = group._roster_in(asyncio.get_running_loop())
    before = group._service.join(URL("/orders"))
    roster.set_listed([Listed(Endpoint("http://a.example:81"))])

    assert ["/orders", "http://a.example:81/orders"] == [
        str(before),
        str(group._service.join(URL("/orders"))),
    ]
