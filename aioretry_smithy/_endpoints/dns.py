"""Find the addresses of a name."""

from __future__ import annotations

import asyncio
import ipaddress
import math
import socket
from collections.abc import Awaitable, Callable, Sequence
from inspect import isawaitable
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

from .._errors import bad_argument, is_finite
from .._request.endpoint import Endpoint
from .discovery import Answer, Listed
from .warn_once import WarnOnce

if TYPE_CHECKING:
    from aiohttp.typedefs import StrOrURL

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

Family: TypeAlias = Literal["prefer_ipv4", "ipv4", "ipv6", "any"]

Resolver: TypeAlias = Callable[
    [str, int], Awaitable[Sequence[tuple[str | Address, float]]]
]
"""Takes a host and a port, and returns addresses, each with its time to live."""

_FAMILIES: Final = {"ipv4": socket.AF_INET, "ipv6": socket.AF_INET6}
"""What to ask for, where it is not both."""

_RETURNS: Final = "returns a list of (address, ttl), as an async function"

# The system need not know all of them.
_EMPTY: Final = frozenset(
    getattr(socket, name, socket.EAI_NONAME)
    for name in ("EAI_NONAME", "EAI_NODATA", "EAI_ADDRFAMILY")
)
"""The errors that say that a name has no address."""


class DnsLookup:
    """Asks for the addresses of a host, each of which is an endpoint.

    It asks as the system does (``/etc/hosts`` and search lists count), which says
    nothing of how long an answer holds. An IPv4 address within IPv6 is one of IPv4;
    addresses with a zone, ``0.0.0.0`` and ``::`` are left out.

    Args:
        url: What the URLs of all endpoints begin with; its host is asked for.
        family: ``prefer_ipv4`` keeps IPv6 in reserve where there are both; ``ipv4`` and
            ``ipv6`` leave the other out; ``any`` makes no difference.
        resolver: Is asked in place of the system: an async function of host and port
            that returns ``[(address, ttl)]``, each address as text or an object of
            ``ipaddress``, each time to live in seconds. The smallest one counts.

    Raises:
        ValueError: An argument is not as described.
    """

    __slots__ = ("_family", "_host", "_port", "_resolver", "_url", "_warn", "known")

    known: Answer | None
    """The answer where the host is an address, and nobody has to be asked."""

    def __init__(
        self,
        url: StrOrURL,
        *,
        family: Family = "prefer_ipv4",
        resolver: Resolver | None = None,
    ) -> None:
        if family not in get_args(Family):
            raise bad_argument("family", family, f"one of {list(get_args(Family))}")
        if resolver is not None and not callable(resolver):
            expected = "an async function of host and port, or None"
            raise bad_argument("resolver", resolver, expected)
        self._url = Endpoint(url).url
        # It has both, or it were no URL of an endpoint.
        self._host = self._url.raw_host or ""
        self._port = self._url.port or 0
        self._family = family
        self._resolver = resolver
        self._warn = WarnOnce()
        self.known = None
        if _is_address(self._host):
            listed = (Listed(Endpoint(self._url, address=self._host)),)
            self.known = Answer(listed, math.inf)

    @property
    def can_be_cut(self) -> bool:
        """Whether to cancel it ends it; the system's own answers occupy a thread."""
        return self._resolver is not None

    async def __call__(self) -> Answer:
        """Return the addresses that the host has now.

        Raises:
            ValueError: The resolver has returned something else.
            Exception: There is no answer.
        """
        if self.known is not None:
            return self.known
        if self._resolver is None:
            return self._listed(await self._addresses_of_system(), None)
        pending: object = self._resolver(self._host, self._port)
        if not isawaitable(pending):
            raise self._told(bad_argument("resolver", pending, _RETURNS))
        answer = await pending
        try:
            addresses, ttl = _checked_answer(answer)
        except ValueError as error:
            raise self._told(error) from None
        return self._listed(addresses, ttl)

    def _told(self, error: ValueError) -> ValueError:
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


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _folded(address: Address) -> Address | None:
    """Return the address to connect to; None for one that nobody can connect to."""
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
        address, ttl = each
        if not is_finite(ttl) or ttl < 0:
            raise bad_argument("resolver", ttl, "returns each ttl finite and >= 0")
        addresses.append(_checked_address(address))
        ttls.append(ttl)
    return addresses, min(ttls, default=None)


def _checked_address(given: object) -> Address:
    expected = "returns IP addresses, as text or objects of ipaddress"
    # Python takes numbers and bytes for addresses too.
    if not isinstance(given, str | Address):
        raise bad_argument("resolver", given, expected)
    try:
        return ipaddress.ip_address(given)
    except ValueError:
        raise bad_argument("resolver", given, expected) from None
