"""The servers that the SRV records of a service name."""

import asyncio
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest
from chains import bad_argument, raises_exactly

pytest.importorskip("dns.asyncresolver")

import dns.asyncresolver
import dns.flags
import dns.message
import dns.name
import dns.rcode
import dns.resolver
import dns.rrset
from dns.rdtypes.IN.SRV import SRV
from hypothesis import given
from hypothesis import strategies as st

from aioretry_smithy import EndpointGroup
from aioretry_smithy._endpoints.discovery import Answer, Discovery
from aioretry_smithy._endpoints.sources import SrvLookup

SERVICE = "_http._tcp.orders.example.com"
NO_NAME = "a name in DNS, such as '_http._tcp.orders.example.com'"
NO_DOMAINS = "names of domains, such as ['example.com']"


class NameServer(asyncio.DatagramProtocol):
    """Answers questions for the names that it knows, on loopback.

    Args:
        zone: What it knows of each name: records as text, or a response code.
    """

    def __init__(self, zone):
        self.zone = zone
        self.asked = []

    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, data, address):
        query = dns.message.from_wire(data)
        name = query.question[0].name.to_text(omit_final_dot=True)
        self.asked.append(name)
        known = self.zone.get(name, dns.rcode.NXDOMAIN)
        response = dns.message.make_response(query)
        response.flags |= dns.flags.RA
        if isinstance(known, list):
            if known:
                records = dns.rrset.from_text(f"{name}.", 30, "IN", "SRV", *known)
                response.answer.append(records)
        else:
            response.set_rcode(known)
        self.transport.sendto(response.to_wire(), address)


@asynccontextmanager
async def serving(zone, search=()):
    """Let the default resolver ask a server that knows these names."""
    loop = asyncio.get_running_loop()
    transport, server = await loop.create_datagram_endpoint(
        lambda: NameServer(zone), local_addr=("127.0.0.1", 0)
    )
    resolver = dns.asyncresolver.Resolver(configure=False)
    resolver.nameservers = ["127.0.0.1"]
    resolver.port = transport.get_extra_info("sockname")[1]
    resolver.search = [dns.name.from_text(each) for each in search]
    resolver.domain = dns.name.root
    before = dns.asyncresolver.default_resolver
    dns.asyncresolver.default_resolver = resolver
    try:
        yield server
    finally:
        dns.asyncresolver.default_resolver = before
        transport.close()
        await asyncio.sleep(0)


def answer_of(zone, name=SERVICE, *, search=(), **settings):
    """Return what a lookup finds, in real time as sockets need it."""

    async def main():
        async with serving(zone, search):
            return await SrvLookup(name, **settings)()

    return asyncio.run(main())


def srv_record(priority, weight, port, target):
    """Return a record of a target with one label, of any characters."""
    labels = [target.encode(), b""] if target else [b""]
    return SRV("IN", "SRV", priority, weight, port, dns.name.Name(labels))


def servers(answer):
    """Return the URLs of an answer with their ranks and weights."""
    return [
        (str(each.endpoint.url), each.rank, each.endpoint.weight)
        for each in answer.listed
    ]


def hosts(*records, **settings):
    """Return the hosts that are taken of these records."""
    answer = answer_of({SERVICE: [*records]}, **settings)
    return [each.endpoint.url.host for each in answer.listed]


class TestRecords:
    """Each record is an endpoint."""

    def test_target_and_port_make_a_url_of_its_own(self):
        """Its weight is the record's; the answer holds as long as the records."""
        answer = answer_of(
            {SERVICE: ["10 1 8080 a.example.com.", "10 3 8081 b.example.com."]}
        )

        assert 30 == answer.ttl
        assert {
            ("http://a.example.com:8080/", 0, 1.0),
            ("http://b.example.com:8081/", 0, 3.0),
        } == {*servers(answer)}
        assert [None, None] == [each.endpoint.address for each in answer.listed]

    def test_lower_priorities_are_lower_ranks(self):
        """Their order counts, not their numbers."""
        answer = answer_of(
            {
                SERVICE: [
                    "20 5 80 c.example.com.",
                    "10 5 80 a.example.com.",
                    "500 5 80 d.example.com.",
                    "10 5 80 b.example.com.",
                ]
            }
        )
        ranks = {each.endpoint.url.host[0]: each.rank for each in answer.listed}

        assert {"a": 0, "b": 0, "c": 1, "d": 2} == ranks

    def test_weight_of_zero_has_a_small_chance(self):
        """Where all are 0, all are equal; each priority counts for itself."""
        answer = answer_of(
            {
                SERVICE: [
                    "10 0 80 a.example.com.",
                    "10 9 80 b.example.com.",
                    "20 0 80 c.example.com.",
                    "20 0 80 d.example.com.",
                ]
            }
        )
        weights = {
            each.endpoint.url.host[0]: each.endpoint.weight for each in answer.listed
        }

        assert {"a": 0.1, "b": 9.0, "c": 1.0, "d": 1.0} == weights

    def test_target_of_a_dot_means_none(self):
        """The service says that it is not there."""
        assert () == answer_of({SERVICE: ["0 0 0 ."]}).listed
        assert ["a.example.com"] == hosts("0 0 0 .", "10 1 80 a.example.com.")

    @pytest.mark.parametrize(
        "target",
        ["evil.com/.example.com.", "user\\@evil.com.example.com.", "a\\#.example.com."],
    )
    def test_target_that_is_no_host_is_left_out(self, target, caplog):
        """It would end the host of the URL early: the request went elsewhere."""
        settings = {"scheme": "https"}

        assert ["a.example.com"] == hosts(
            f"10 1 80 {target}", "10 1 443 a.example.com.", **settings
        )
        assert 1 == len(caplog.messages)
        assert caplog.messages[0].endswith(": no host and port")

    def test_target_without_a_port_is_left_out(self, caplog):
        """Nobody can connect to it."""
        assert ["b.example.com"] == hosts(
            "10 1 0 a.example.com.", "10 1 80 b.example.com."
        )
        assert [
            f"{SERVICE}: skipped a.example.com:0: no host and port"
        ] == caplog.messages

    @given(
        st.lists(
            st.builds(
                srv_record,
                st.integers(0, 3),
                st.integers(0, 65535),
                st.integers(0, 65535),
                st.text("aZ0.-_/:@\\[]%?#ä", max_size=12),
            )
        )
    )
    def test_any_records_are_understood(self, records):
        """Each host of a URL is the whole target of a record; rank 0 is never empty."""
        lookup = SrvLookup(SERVICE)

        class Records(list):
            qname, rrset = dns.name.from_text(SERVICE), None

        async def resolve(name, kind, *, search):
            return Records(records)

        try:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(dns.asyncresolver, "resolve", resolve)
                answer = asyncio.run(lookup())
        except LookupError:
            return
        hosts = [each.target.to_text(omit_final_dot=True).lower() for each in records]
        places = {
            f"http://{host}:{each.port}"
            for host, each in zip(hosts, records, strict=True)
        }

        assert {str(each.endpoint.url.origin()) for each in answer.listed} <= {
            place.removesuffix(":80") for place in places
        }
        assert {each.rank for each in answer.listed} == {
            *range(len({each.rank for each in answer.listed}))
        }
        assert all(each.endpoint.weight > 0 for each in answer.listed)


class TestNames:
    """Names are DNS's own."""

    def test_dots_at_the_end_make_no_difference(self):
        """A whole name is not looked for in the search list."""
        zone = {SERVICE: ["10 1 80 A.example.com."]}

        assert "http://a.example.com" == str(
            answer_of(zone, f"{SERVICE}.", search=["other.com"])
            .listed[0]
            .endpoint.url.origin()
        )

    def test_search_list_counts(self):
        """A short name is one of the cluster's."""
        whole = "_http._tcp.orders.default.svc.cluster.local"
        zone = {whole: ["0 1 80 a.orders.default.svc.cluster.local."]}
        answer = answer_of(
            zone,
            "_http._tcp.orders",
            search=["default.svc.cluster.local"],
            scheme="https",
        )

        assert ["a.orders.default.svc.cluster.local"] == [
            each.endpoint.url.host for each in answer.listed
        ]

    @pytest.mark.parametrize("zone", [{}, {SERVICE: []}], ids=["no name", "no data"])
    def test_name_without_records_is_an_empty_answer(self, zone):
        """The question was answered."""
        assert Answer(()) == answer_of(zone)

    def test_failure_of_the_server_is_no_answer(self):
        """It says nothing about the name."""
        with pytest.raises(dns.resolver.NoNameservers, match="SERVFAIL"):
            answer_of({SERVICE: dns.rcode.SERVFAIL})


class TestDomains:
    """With ``https`` DNS does not choose who gets the credentials."""

    @pytest.mark.parametrize(
        "target",
        [
            "orders.example.com",
            "a.orders.example.com",
            "ORDERS.Example.COM",
            "example.com",
            "other.example.com",
        ],
    )
    def test_target_in_the_services_domain_is_taken(self, target):
        """And one below the domain above it, which has two labels."""
        taken = hosts(f"0 1 443 {target}.", scheme="https")

        assert [target.lower()] == taken

    @pytest.mark.parametrize("target", ["a.com", "notexample.com", "example.com.evil"])
    def test_target_elsewhere_is_left_out(self, target, caplog):
        """With one warning, however often it is found."""
        zone = {SERVICE: [f"0 1 443 {target}.", "0 1 443 a.example.com."]}

        async def main():
            lookup = SrvLookup(SERVICE, scheme="https")
            async with serving(zone):
                return [await lookup() for _ in range(3)]

        for answer in asyncio.run(main()):
            assert [("https://a.example.com/", 0, 1.0)] == servers(answer)
        outside = "outside example.com, orders.example.com (see allowed_domains)"

        assert [f"{SERVICE}: skipped {target}:443: {outside}"] == caplog.messages

    def test_top_domain_is_no_domain_of_a_service(self):
        """All the world is below it."""
        zone = {"_https._tcp.example.com": ["0 1 443 a.com."]}

        with raises_exactly(
            "_https._tcp.example.com: all targets are invalid", LookupError
        ):
            answer_of(zone, "_https._tcp.example.com", scheme="https")

    @pytest.mark.parametrize("name", ["_https._tcp", "_https._tcp.local"])
    def test_service_without_a_domain_allows_nothing_else(self, name):
        """Not even what is in no domain."""
        with pytest.raises(LookupError):
            answer_of({name: ["0 1 443 a.com."]}, f"{name}.", scheme="https")

    def test_rank_of_targets_that_are_left_out_goes_to_the_next(self):
        """The first that serve are of rank 0."""
        answer = answer_of(
            {SERVICE: ["0 1 443 a.evil.", "5 2 443 b.example.com."]}, scheme="https"
        )

        assert [("https://b.example.com/", 0, 2.0)] == servers(answer)

    @pytest.mark.parametrize("domain", ["cdn.net", "CDN.net.", "edge.cdn.net"])
    def test_further_domains_may_be_allowed(self, domain, caplog):
        """With what is below."""
        settings = {"scheme": "https", "allowed_domains": [domain]}

        assert ["a.edge.cdn.net"] == hosts("0 1 443 a.edge.cdn.net.", **settings)
        assert [] == caplog.messages

    def test_without_tls_any_target_is_taken(self):
        """There is nobody whose certificate says who it is."""
        assert ["a.evil"] == hosts("0 1 80 a.evil.")

    def test_answer_of_strangers_alone_keeps_the_list(self):
        """It is a failed query, no empty answer."""
        zone = {SERVICE: ["0 1 443 a.example.com."]}
        lists, failures = [], []

        async def main():
            lookup = SrvLookup(SERVICE, scheme="https")
            roster = SimpleNamespace(
                set_listed=lists.append, note_failed_query=failures.append
            )
            discovery = Discovery(lookup, roster)
            loop = asyncio.get_running_loop()
            async with serving(zone):
                for _ in range(2):
                    discovery.asks_at = discovery.due_at = loop.time()
                    discovery.use(loop.time())
                    await asyncio.wait(asyncio.all_tasks() - {asyncio.current_task()})
                    await asyncio.sleep(0)
                    zone[SERVICE] = ["0 1 443 a.evil."]
            return discovery.use(loop.time())

        assert asyncio.run(main()) is True
        assert 1 == len(lists)
        assert [f"{SERVICE}: all targets are invalid"] == [*map(str, failures)]


class TestArguments:
    """What cannot be meant is refused."""

    @pytest.mark.parametrize("name", ["", ".", "a..b", "a b", 7, None])
    def test_bad_name(self, name):
        """The error shows one."""
        with bad_argument("name", name, NO_NAME):
            SrvLookup(name)

    def test_url_is_no_name(self):
        """It is not repeated, as it may hold a password."""
        with raises_exactly(f"name: <str object> (expected: {NO_NAME})"):
            SrvLookup("http://orders.example.com")

    def test_bad_scheme(self):
        """Requests speak HTTP."""
        with bad_argument("scheme", "ftp", "'http' or 'https'"):
            SrvLookup(SERVICE, scheme="ftp")

    @pytest.mark.parametrize("domains", ["example.com", b"example.com", 7])
    def test_domains_are_a_list(self, domains):
        """Text is none, though it has parts."""
        with bad_argument("allowed_domains", domains, NO_DOMAINS):
            SrvLookup(SERVICE, allowed_domains=domains)

    @pytest.mark.parametrize("domain", ["", "*.example.com", ".example.com", 7])
    def test_bad_domain(self, domain):
        """Nothing stands for what is below, which counts anyway."""
        with bad_argument("allowed_domains", domain, NO_DOMAINS):
            SrvLookup(SERVICE, allowed_domains=["example.com", domain])

    def test_may_be_cut(self):
        """No thread waits for it."""
        assert SrvLookup(SERVICE).is_cancellable is True


@pytest.mark.parametrize("name", ["", 0, False, b""])
def test_empty_name_of_a_group_is_refused(name):
    """It is no name, and was not left out."""
    with bad_argument("name", name, "a str that is not empty"):
        EndpointGroup.srv("_http._tcp.a.example", name=name)
