"""The sources of a group's endpoints: a fixed list, DNS, or a query function."""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from inspect import isawaitable
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias, get_args

from .._errors import bad_argument, is_finite, missing_extra
from .._request.endpoint import Address, Endpoint, address_of, origin_key
from .discovery import Answer, Discovery, Listed, WarnOnce

if TYPE_CHECKING:
    from aiohttp.typedefs import StrOrURL
    from dns.name import Name
    from yarl import URL

    from .roster import Roster


Family: TypeAlias = Literal["prefer_ipv4", "ipv4", "ipv6", "any"]

Resolver: TypeAlias = Callable[
    [str, int], Awaitable[Sequence[tuple[str | Address, float]]]
]
"""Takes a host and a port, and returns addresses, each with its time to live."""

USUAL_REFRESH: Final = 1.0, 60.0
"""The default bounds of the time that an answer holds, in seconds."""

_FAMILIES: Final = {"ipv4": socket.AF_INET, "ipv6": socket.AF_INET6}
"""Address families to resolve, if not both."""

_RETURNS: Final = "returns a list of (address, ttl), as an async function"

# The system need not know all of them.
_EMPTY: Final = frozenset(
    getattr(socket, name, socket.EAI_NONAME)
    for name in ("EAI_NONAME", "EAI_NODATA", "EAI_ADDRFAMILY")
)
"""The errors that say that a name has no address."""


class FoundSource(ABC):
    """Base of the sources whose endpoints a query finds, again and again."""

    may_fill = True
    service_key: str | None = None
    has_addresses = False

    is_cancellable: bool = True
    """Whether cancelling ends the query; the system resolver occupies a thread."""

    known: Sequence[Listed] | None = None
    """The fixed endpoints; None if a query finds the endpoints."""

    _words = ""
    _url: URL | None = None

    def __init__(self, name: str, refresh: tuple[float, float]) -> None:
        self.usual_name: str | None = name
        self.refresh: tuple[float, float] = _checked_refresh(refresh)
        self._warn = WarnOnce()

    @abstractmethod
    async def __call__(self) -> Answer:
        """Query the current endpoints.

        Raises:
            Exception: There is no answer.
        """

    def url(self) -> URL | None:
        """Return how the URLs of the service begin, where all endpoints share that."""
        return self._url

    def origin(self) -> URL | None:
        """Return the origin of all URLs of the service, if shared."""
        return self._url

    def fill(self, roster: Roster) -> None:
        """Let the roster query the endpoints when it is used."""
        if self.known is not None:
            roster.set_listed(self.known)
            return
        roster.discovery = Discovery(self, roster)
        roster.review()

    def __repr__(self) -> str:
        return f"{self._words}({self.usual_name!r}"


def _checked_refresh(refresh: object) -> tuple[float, float]:
    expected = "two numbers of seconds, finite, 0 < the first <= the second"
    if not isinstance(refresh, tuple | list) or len(refresh) != 2:
        raise bad_argument("refresh", refresh, expected)
    least, most = refresh
    if not (is_finite(least) and is_finite(most) and 0 < least <= most):
        raise bad_argument("refresh", refresh, expected)
    return least, most


class DnsLookup(FoundSource):
    """Asks for the addresses of a host, each of which is an endpoint.

    An IPv4 address within IPv6 is one of IPv4; addresses with a zone, ``0.0.0.0`` and
    ``::`` are left out.
    """

    has_addresses = True
    _words = "EndpointGroup.dns"
    _url: URL

    def __init__(
        self,
        url: StrOrURL,
        *,
        family: Family = "prefer_ipv4",
        resolver: Resolver | None = None,
        refresh: tuple[float, float] = USUAL_REFRESH,
    ) -> None:
        if family not in get_args(Family):
            raise bad_argument("family", family, f"one of {list(get_args(Family))}")
        if resolver is not None and not callable(resolver):
            expected = "an async function of host and port, or None"
            raise bad_argument("resolver", resolver, expected)
        service = Endpoint(url)
        self.service_key = service.key
        self._url = url = service.url
        super().__init__(str(url.origin() if url.raw_path == "/" else url), refresh)
        # It has both, or it were no URL of an endpoint.
        self._host = url.raw_host or ""
        self._port = url.port or 0
        self._family = family
        self._resolver = resolver
        self.is_cancellable = resolver is not None
        if address_of(self._host) is not None:
            self.known = (Listed(Endpoint(url, address=self._host)),)

    async def __call__(self) -> Answer:
        """Return the addresses that the host has now."""
        if self._resolver is None:
            return self._listed(await self._addresses_of_system(), None)
        pending: object = self._resolver(self._host, self._port)
        if not isawaitable(pending):
            raise self._warned(bad_argument("resolver", pending, _RETURNS))
        answer = await pending
        try:
            addresses, ttl = _checked_answer(answer)
        except ValueError as error:
            raise self._warned(error) from None
        return self._listed(addresses, ttl)

    def _warned(self, error: ValueError) -> ValueError:
        self._warn(f"{self._url.raw_authority}: {error}")
        return error

    async def _addresses_of_system(self) -> list[Address]:
        loop = asyncio.get_running_loop()
        try:
            found = await loop.getaddrinfo(
                self._host,
                self._port,
                family=_FAMILIES.get(self._family, socket.AF_UNSPEC),
                type=socket.SOCK_STREAM,
                proto=socket.IPPROTO_TCP,
                flags=socket.AI_ADDRCONFIG,
            )
        except socket.gaierror as error:
            if error.errno in _EMPTY:
                return []
            raise
        # Of four parts is what there is for IPv6; the last is the zone.
        names = [where[0] for *_, where in found if len(where) != 4 or not where[3]]
        return [ipaddress.ip_address(name) for name in names]

    def _listed(self, addresses: Sequence[Address], ttl: float | None) -> Answer:
        folded = [each for each in map(_folded, addresses) if each is not None]
        if self._family in _FAMILIES:
            version = 4 if self._family == "ipv4" else 6
            folded = [each for each in folded if each.version == version]
        has_ipv4 = any(each.version == 4 for each in folded)
        has_reserve = has_ipv4 and self._family == "prefer_ipv4"
        listed = []
        for each in folded:
            is_reserve = has_reserve and each.version == 6
            endpoint = Endpoint(self._url, address=each)
            listed.append(Listed(endpoint, int(is_reserve), is_reserve))
        return Answer(tuple(listed), ttl)


def _folded(address: Address) -> Address | None:
    """Return the address to connect to; None if no connection is possible."""
    if isinstance(address, ipaddress.IPv6Address):
        if address.scope_id is not None:
            return None
        address = address.ipv4_mapped or address
    return None if address.is_unspecified else address


def _checked_answer(answer: object) -> tuple[list[Address], float | None]:
    """Return the addresses and the smallest time to live that a resolver returned."""
    if not isinstance(answer, list | tuple):
        raise bad_argument("resolver", answer, _RETURNS)
    addresses, ttls = [], []
    for each in answer:
        if not isinstance(each, list | tuple) or len(each) != 2:
            raise bad_argument("resolver", each, "returns pairs of address and ttl")
        given, ttl = each
        address = address_of(given)
        if address is None:
            expected = "returns IP addresses, as text or objects of ipaddress"
            raise bad_argument("resolver", given, expected)
        if not is_finite(ttl) or ttl < 0:
            raise bad_argument("resolver", ttl, "returns each ttl finite and >= 0")
        addresses.append(address)
        ttls.append(ttl)
    return addresses, min(ttls, default=None)


Scheme: TypeAlias = Literal["http", "https"]

_LEAST_WEIGHT: Final = 0.1
"""The weight used for 0: the target gets a small chance."""

# DNS allows any byte in a name; some of them would end the host of a URL.
_HOST: Final = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*", re.ASCII | re.IGNORECASE)


class SrvRecord(NamedTuple):
    """One server of a service."""

    priority: int
    weight: int
    port: int
    target: str
    """The name of its host, without the dot at the end; empty for none."""


def _text(name: Name) -> str:
    return name.to_text().rstrip(".")


class SrvLookup(FoundSource):
    """Asks for the SRV records of a service, each of which is an endpoint.

    With ``https`` DNS does not choose who gets the credentials: a target has to be in
    the domain of the service or below it, or below the parent of that domain if the
    parent has two labels or more. (A parent such as ``co.uk`` passes for one.)
    """

    _words = "EndpointGroup.srv"

    def __init__(
        self,
        name: str,
        *,
        scheme: Scheme = "http",
        allowed_domains: Iterable[str] = (),
        refresh: tuple[float, float] = USUAL_REFRESH,
    ) -> None:
        if not _is_name(name):
            expected = "a name in DNS, such as '_http._tcp.orders.example.com'"
            raise bad_argument("name", name, expected)
        if scheme not in get_args(Scheme):
            raise bad_argument("scheme", scheme, "'http' or 'https'")
        self._allowed = frozenset(_checked_domains(allowed_domains))
        try:
            import dns.asyncresolver  # noqa: F401, PLC0415
        except ModuleNotFoundError as cause:
            raise missing_extra("dns", cause) from cause
        super().__init__(name, refresh)
        self._name, self._scheme = name, scheme

    async def __call__(self) -> Answer:
        """Return the servers that the service has now."""
        # What may not be installed; __init__() has looked.
        import dns.asyncresolver  # noqa: PLC0415
        from dns.rdtypes.IN.SRV import SRV  # noqa: PLC0415
        from dns.resolver import NXDOMAIN, NoAnswer  # noqa: PLC0415

        # The function, and no resolver of ours: a program may have set the default one.
        try:
            answer = await dns.asyncresolver.resolve(self._name, "SRV", search=True)
        except (NXDOMAIN, NoAnswer):
            return Answer(())
        offered = [
            SrvRecord(each.priority, each.weight, each.port, target)
            for each in answer
            if isinstance(each, SRV) and (target := _text(each.target))
        ]
        taken = self._with_hosts(offered)
        if self._scheme == "https":
            taken = self._within(_text(answer.qname), taken)
        if offered and not taken:
            raise LookupError(f"{self._name}: all targets are invalid")
        ttl = None if answer.rrset is None else answer.rrset.ttl
        return Answer(tuple(self._listed(taken)), ttl)

    def _with_hosts(self, records: Sequence[SrvRecord]) -> Sequence[SrvRecord]:
        """Leave out the records without a valid host and port."""
        fit = [each for each in records if _HOST.fullmatch(each.target) and each.port]
        self._warn_of_others(records, fit, "no host and port")
        return fit

    def _within(self, name: str, records: Sequence[SrvRecord]) -> Sequence[SrvRecord]:
        """Leave out the records with hosts outside of the allowed domains."""
        domains = self._allowed.union(_domains_of(name))
        ends = tuple(f".{domain}" for domain in domains)
        fit = [each for each in records if f".{each.target.lower()}".endswith(ends)]
        why = f"outside {', '.join(sorted(domains))} (see allowed_domains)"
        self._warn_of_others(records, fit, why)
        return fit

    def _warn_of_others(
        self, records: Sequence[SrvRecord], fit: Sequence[SrvRecord], why: str
    ) -> None:
        others = sorted({f"{each.target}:{each.port}" for each in {*records} - {*fit}})
        if others:
            self._warn(f"{self._name}: skipped {', '.join(others)}: {why}")

    def _listed(self, records: Sequence[SrvRecord]) -> Iterator[Listed]:
        priorities = sorted({each.priority for each in records})
        weighted = {each.priority for each in records if each.weight}
        for each in records:
            # Where all weights are 0, all targets are equal.
            least = _LEAST_WEIGHT if each.priority in weighted else 1.0
            url = f"{self._scheme}://{each.target}:{each.port}"
            endpoint = Endpoint(url, weight=each.weight or least)
            yield Listed(endpoint, priorities.index(each.priority))


def _domains_of(name: str) -> Iterator[str]:
    """Yield the domain of a service, and the parent domain unless top-level."""
    labels = name.lower().split(".")
    while labels and labels[0].startswith("_"):
        del labels[0]
    if labels:
        yield ".".join(labels)
    if len(labels) > 2:
        yield ".".join(labels[1:])


def _is_name(given: object) -> bool:
    return isinstance(given, str) and bool(_HOST.fullmatch(given.removesuffix(".")))


def _checked_domains(domains: Iterable[str]) -> list[str]:
    expected = "names of domains, such as ['example.com']"
    if isinstance(domains, str | bytes) or not isinstance(domains, Iterable):
        raise bad_argument("allowed_domains", domains, expected)
    names = list(domains)
    for each in names:
        if not _is_name(each):
            raise bad_argument("allowed_domains", each, expected)
    return [each.removesuffix(".").lower() for each in names]


class GivenSource:
    """A source with a fixed list of endpoints."""

    service_key: str | None = None

    def __init__(self, words: str, *, may_fill: bool) -> None:
        self._words = words
        self.may_fill = may_fill
        self.usual_name: str | None = None
        self.has_addresses: bool = False
        self._listed: list[Listed] = []

    def give(self, endpoints: Iterable[StrOrURL | Endpoint]) -> None:
        """Replace the endpoints; duplicates are dropped.

        Raises:
            ValueError: Something among them is no endpoint.
        """
        if isinstance(endpoints, str) or not isinstance(endpoints, Iterable):
            raise bad_argument("endpoints", endpoints, "a list of endpoints")
        found = [
            each if isinstance(each, Endpoint) else Endpoint(each) for each in endpoints
        ]
        self._listed = [Listed(each) for each in dict.fromkeys(found)]
        self.has_addresses = any(each.address is not None for each in found)

    def name(self) -> str:
        """Return the origins of the endpoints."""
        origins = (str(each.endpoint.url.origin()) for each in self._listed)
        return ", ".join(dict.fromkeys(origins))

    def url(self) -> URL | None:
        """Return the URL of the first endpoint."""
        return self._listed[0].endpoint.url if self._listed else None

    def origin(self) -> URL | None:
        """Return a URL of the only origin that all endpoints have; None for several."""
        origins = {origin_key(each.endpoint.url) for each in self._listed}
        return self.url() if len(origins) == 1 else None

    def fill(self, roster: Roster) -> None:
        """Put the endpoints into a roster."""
        roster.set_listed(self._listed)

    def __repr__(self) -> str:
        listed = ", ".join(repr(each.endpoint) for each in self._listed)
        return f"{self._words}({listed}"


Source: TypeAlias = GivenSource | FoundSource
"""A source of endpoints for a group."""
