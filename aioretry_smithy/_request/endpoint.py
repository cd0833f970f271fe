"""An endpoint: a single server of a group, and the service that the group provides."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from aiohttp.client_reqrep import ConnectionKey
from multidict import CIMultiDict
from yarl import URL

from .. import _checks as check
from .._errors import bad_argument
from .._text.mask import DEFAULT_MASK
from .._values import extensible

if TYPE_CHECKING:
    import aiohttp
    from aiohttp.typedefs import StrOrURL


Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

SCHEMES: Final = frozenset({"http", "https", "ws", "wss"})
"""The schemes of the URLs that aiohttp sends requests to."""

_SAME_AS: Final = {"ws": "http", "wss": "https"}
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


@extensible
@dataclass(init=False, repr=False, eq=False, frozen=True, slots=True)
class Endpoint:
    """A single server: the origin of its URLs, and the address of its connections.

    Two are equal if scheme, host, port, path and address are, whatever their weights.
    After Armeria's ``Endpoint``.

    Args:
        url: The beginning of its URLs: scheme, host, port, a path to put before each.
            Host header, TLS name and cookies go by it.
        address: The IP address that connections go to; unless given, what the name of
            the host stands for.
        weight: Its share of the requests, compared with others, finite and >= 0;
            with 0 it gets none.

    Raises:
        ValueError: An argument is not as described.

    >>> Endpoint("https://eu.example.com") == Endpoint("https://EU.example.com:443/")
    True
    >>> print(Endpoint("http://orders:8080", address="10.0.0.3"))
    10.0.0.3:8080
    """

    url: URL
    """The beginning of its URLs, with a slash at its end."""

    address: str | None
    """The IP address that connections go to; None to look the host up."""

    weight: float
    """The relative share of requests for the endpoint."""

    text: str
    """The endpoint in logs."""

    key: str
    """The ``host:port`` of the server, the key for circuit breakers and limits."""

    _identity: tuple[object, ...]

    def __init__(
        self,
        url: StrOrURL,
        *,
        address: str | Address | None = None,
        weight: float = 1.0,
    ) -> None:
        check.not_negative("weight", weight)
        parsed = _checked_url(url)
        if not parsed.raw_path.endswith("/"):
            parsed = parsed.with_path(f"{parsed.raw_path}/", encoded=True)
        where = None if address is None else _checked_address(address)
        scheme, host, port = origin_key(parsed)
        if where is None:
            text = f"{parsed.raw_authority}{parsed.raw_path.rstrip('/')}"
            key = f"{parsed.host_subcomponent}:{port}"
        else:
            text = key = f"[{where}]:{port}" if ":" in where else f"{where}:{port}"
        facts = {
            "url": parsed,
            "address": where,
            "weight": float(weight),
            "text": text,
            "key": key,
            "_identity": (scheme, host, port, parsed.raw_path, where),
        }
        for name, value in facts.items():
            object.__setattr__(self, name, value)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Endpoint):
            return self._identity == other._identity
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self._identity)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        address = "" if self.address is None else f", address={self.address!r}"
        weight = "" if self.weight == 1.0 else f", weight={self.weight}"
        url = str(self.url) if self.url.raw_path != "/" else str(self.url.origin())
        return f"Endpoint({url!r}{address}{weight})"


def origin_key(url: URL) -> tuple[str, str, int | None]:
    """Return the key that all URLs of an origin share; ``ws`` counts as ``http``."""
    scheme = url.scheme
    host = (url.raw_host or "").lower()
    return _SAME_AS.get(scheme, scheme), host, url.port


def check_scheme(name: str, url: StrOrURL) -> None:
    """Refuse the URL of a server that has no scheme, and say what to write.

    Raises:
        ValueError: It has none, or is no URL.
    """
    if not isinstance(url, str | URL):
        several = isinstance(url, Collection) and not isinstance(url, bytes)
        hint = "; for several servers EndpointGroup.of(*urls)" if several else ""
        raise bad_argument(name, url, f"a str or a yarl.URL{hint}")
    if isinstance(url, str) and not _SCHEME.match(url):
        # With a scheme it can be seen what in it is secret.
        place = url.strip("/")
        near = DEFAULT_MASK.text(f"http://{place}" if place else "https://example.com")
        shown = near.removeprefix("http://") if "@" in place else url
        raise bad_argument(name, shown, f"with a scheme, such as {near!r}")


def _checked_url(given: StrOrURL) -> URL:
    """Return the URL of an endpoint, or say what to write in its place."""
    check_scheme("url", given)
    try:
        url = URL(given)
        host, port = url.host, url.port
    except ValueError as error:
        raise bad_argument("url", given, f"a URL: {error}") from None
    if url.scheme not in SCHEMES or not host or port is None:
        raise bad_argument("url", given, "http:// or https://, and a host")
    if "%" in host:
        raise bad_argument("url", given, "a host without a zone")
    bare = URL.build(
        scheme=url.scheme,
        authority=url.raw_authority.rpartition("@")[2],
        path=url.raw_path,
        encoded=True,
    )
    if "@" in url.raw_authority:
        expected = f"without credentials: {str(bare)!r}, and auth= of the session"
        raise bad_argument("url", given, expected)
    if url.raw_query_string or url.raw_fragment or str(given).endswith(("?", "#")):
        expected = f"without query and fragment: {str(bare)!r}"
        raise bad_argument("url", given, expected)
    return bare


def address_of(given: object) -> Address | None:
    """Parse an IP address, a text or an object; None for other values."""
    # Python takes numbers and bytes for addresses too.
    if not isinstance(given, str | Address):
        return None
    try:
        return ipaddress.ip_address(given)
    except ValueError:
        return None


def _checked_address(given: object) -> str:
    """Return an IP address as text; one of IPv4 within IPv6 is one of IPv4."""
    address = address_of(given)
    if address is None:
        expected = "an IP address; a name belongs into url"
        raise bad_argument("address", given, expected)
    if isinstance(address, ipaddress.IPv6Address):
        if address.scope_id is not None:
            raise bad_argument("address", str(given), "without a zone")
        address = address.ipv4_mapped or address
    return str(address)


_K = TypeVar("_K", bound="Hashable")
_V = TypeVar("_V")

_ROOT: Final = URL("http://root.invalid/")
_MOST_KEPT: Final = 1024


class Service:
    """Stands for several servers in place of a base URL, and finds their requests.

    Args:
        key: Its name, for what is kept per service.
        url: Finds how its URLs begin as they are shown; None before that is known.
        origin: Finds a URL whose origin absolute URLs may have; None for none.
    """

    __slots__ = ("__weakref__", "_found", "_origin", "_url", "key")

    key: str
    """The name of the service, a key for state kept per service."""

    def __init__(
        self,
        key: str,
        url: Callable[[], URL | None],
        origin: Callable[[], URL | None],
    ) -> None:
        self.key = key
        self._url = url
        self._origin = origin
        self._found: dict[StrOrURL, URL | None] = {}

    def beginning(self) -> URL | None:
        """Return the service's origin for display; None before it is known."""
        return self._url()

    def join(self, url: URL) -> URL:
        """Join a relative URL to the origin; unchanged if the origin is unknown."""
        base = self._url()
        return url if base is None else joined(base, from_root(url))

    def whole(self, asked: URL) -> URL:
        """Return what :meth:`find` has found as a URL with the service's origin."""
        return asked if asked.absolute else self.join(asked)

    def find(self, target: StrOrURL) -> URL | None:
        """Return the URL asked of the service, from the root or absolute.

        That is the target with its dots resolved; None where it is of another origin,
        or no URL.
        """
        try:
            found = self._found.get(target, _ROOT)
        except TypeError:
            return None
        if found is _ROOT:
            found = self._find(target)
            keep(self._found, target, found)
        return found

    def _find(self, target: StrOrURL) -> URL | None:
        url = url_of(target)
        if url is None:
            return None
        if not (url.absolute or url.scheme):
            return from_root(url)
        origin = self._origin()
        is_ours = origin is not None and origin_key(url) == origin_key(origin)
        return url if is_ours else None

    def renamed(self, before: StrOrURL, target: StrOrURL) -> StrOrURL:
        """Return a replaced target from the root, if the service had the one before.

        The new one may begin as the service's URLs are shown.
        """
        base = self._url()
        if base is None or self.find(before) is None:
            return target
        url = url_of(target)
        return target if url is None else path_after(base, url) or target

    def forget(self) -> None:
        """Find targets anew, because the servers have changed."""
        self._found.clear()

    def __repr__(self) -> str:
        return f"Service({self.key!r})"


def from_root(url: URL) -> URL:
    """Return a relative URL with its dots resolved, beginning with a slash."""
    return _ROOT.join(url).relative()


class ServiceBehind(Service):
    """A service that URLs of a second origin reach, too.

    Args:
        service: The service.
        url: The beginning, with a slash at its end.
    """

    __slots__ = ("_beginning", "_service")

    def __init__(self, service: Service, url: URL) -> None:
        super().__init__(service.key, service.beginning, lambda: None)
        self._service = service
        self._beginning = url

    def find(self, target: StrOrURL) -> URL | None:
        """Return the URL asked of the service; None for other servers."""
        found = self._service.find(target)
        return super().find(target) if found is None else found

    def _find(self, target: StrOrURL) -> URL | None:
        url, beginning = url_of(target), self._beginning
        if url is None or origin_key(url) != origin_key(beginning):
            return None
        url = joined(url.origin(), from_root(url.relative()))
        if f"{url.raw_path}/" == beginning.raw_path:
            whole = url.with_path(beginning.raw_path, encoded=True)
            url = whole.with_query(url.query)
        return path_after(beginning, url)


def endpoint_of(name: str, given: StrOrURL | Endpoint) -> Endpoint:
    """Return the endpoint that an argument is, or is the URL of.

    Raises:
        ValueError: It is none.
    """
    if isinstance(given, Endpoint):
        return given
    try:
        return Endpoint(given)
    except ValueError as error:
        raise ValueError(str(error).replace("url:", f"{name}:", 1)) from None


def url_of(target: StrOrURL) -> URL | None:
    """Return a target as a URL; None if aiohttp will refuse to send the target."""
    try:
        return URL(target)
    except (TypeError, ValueError):
        return None


def joined(base: URL, path: URL) -> URL:
    """Return a URL whose path and query are those of *path*, after those of *base*."""
    return URL.build(
        scheme=base.scheme,
        authority=base.raw_authority,
        path=base.raw_path + path.raw_path.removeprefix("/"),
        query_string=path.raw_query_string,
        fragment=path.raw_fragment,
        encoded=True,
    )


def path_after(base: URL, url: URL) -> URL | None:
    """Return a relative URL that :func:`joined` to *base* is *url*; None for none."""
    start = base.raw_path
    if origin_key(url) != origin_key(base) or not url.raw_path.startswith(start):
        return None
    return URL.build(
        path="/" + url.raw_path.removeprefix(start),
        query_string=url.raw_query_string,
        fragment=url.raw_fragment,
        encoded=True,
    )


def keep(values: dict[_K, _V], key: _K, value: _V) -> None:
    """Keep a value that can be made anew; all are dropped when there are too many."""
    if len(values) >= _MOST_KEPT:
        values.clear()
    values[key] = value


KEY_HAS_NAME: Final = "server_hostname" in ConnectionKey._fields
"""Whether aiohttp keeps connections with different TLS names apart; since 3.14.1."""


class AddressMiddleware:
    """A middleware of aiohttp that connects to the address of an endpoint.

    It stands inside all others, is asked for each hop, and leaves those alone that go
    to other origins or through a proxy. It has no state of a request.

    Args:
        endpoint: One with an address.
    """

    __slots__ = ("_address", "_found", "_is_tls", "_name", "_origin")

    def __init__(self, endpoint: Endpoint) -> None:
        self._address = endpoint.address or ""
        self._name = endpoint.url.raw_host
        self._origin = origin_key(endpoint.url)
        self._is_tls = self._origin[0] == "https"
        self._found: dict[URL, URL] = {}

    async def __call__(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        """Send a request to the chosen address; restore changed settings afterwards."""
        url = request.url
        there = self._found.get(url) or self._find(url)
        if there is None or request.proxy is not None:
            return await handler(request)
        name, headers = request.server_hostname, request.proxy_headers
        request.url = there
        if self._is_tls:
            request.server_hostname = own = name or self._name
            if not KEY_HAS_NAME:
                # Part of the key, and sent nowhere without a proxy.
                request.proxy_headers = CIMultiDict({"server-name": own or ""})
        try:
            return await handler(request)
        finally:
            # Another middleware may send it again.
            request.url, request.server_hostname = url, name
            request.proxy_headers = headers

    def _find(self, url: URL) -> URL | None:
        """Return a URL with the address; None for one of another origin."""
        if origin_key(url) != self._origin:
            return None
        there = url.with_host(self._address)
        keep(self._found, url, there)
        return there
