"""Find the key of a request, and tell a session's own servers from strangers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, Final, Generic, TypeVar

import aiohttp
from yarl import URL

from .._errors import bad_argument
from .._text.printable import name_of
from .._values import BoundedMap
from .endpoint import Service, origin_key

if TYPE_CHECKING:
    from .request import HttpRequest

    Base = URL | Service | None
    Place = tuple[str | None, str, int | None]


_AFTER_SCHEME = len("https://")
_SCHEMES = frozenset({"http", "https"})


# After a slash, these make the rest a host: tabs and line ends are left out of a URL.
_NO_PATH = frozenset("/\t\r\n")
_NO_AUTHORITY = frozenset("/@?#\t\r\n")


def host_key(request: HttpRequest) -> str | None:
    """Name the server of a request, as ``host:port``.

    The port is always included, an IPv6 address is in brackets, and letters are small:
    one server has one key. User and path are not part of it. None without a host and a
    port, and for an invalid URL, which aiohttp reports.

    >>> from aioretry_smithy import HttpRequest
    >>> host_key(HttpRequest("GET", "https://user@Example.com/orders"))
    'example.com:443'

    Of a request to several servers of one service: the name of that; once one of them
    is chosen, the address and port of that.
    """
    if request.route is not None:
        return request.route.key
    base = request._base_url
    if isinstance(base, Service):
        if base.find(request.target) is not None:
            return base.key
        base = None
    target = request.target
    try:
        if type(target) is str:
            if base is not None and target[:1] == "/" and target[1:2] not in _NO_PATH:
                # To join a path to its base takes longer than all the rest.
                return _host_and_port(base)
            if (origin := _origin(target)) is not None:
                return _key_of(origin)
        return _host_and_port(request.url)
    except Exception:
        return None


@lru_cache(maxsize=1024)
def _key_of(origin: str) -> str | None:
    # To take a text apart costs more than all the rest of a call that succeeds at once.
    return _host_and_port(URL(origin))


def _host_and_port(url: URL) -> str | None:
    host, port = url.host_subcomponent, url.port
    return f"{host.lower()}:{port}" if host and port is not None else None


def service_key(request: HttpRequest) -> str | None:
    """Name the service of a request with several servers, or else the host.

    >>> from aioretry_smithy import HttpRequest
    >>> service_key(HttpRequest("GET", "https://example.com/orders"))
    'example.com:443'
    """
    if request.route is not None:
        return request.route.service_key
    return host_key(request)


def other_host_key(request: HttpRequest) -> str | None:
    """Name the server of a request as :func:`host_key`; None of one of several."""
    return host_key(request) if request.route is None else None


def group_key(request: HttpRequest) -> str | None:
    """Name the service of a request to several servers; None of any other request."""
    if request.route is not None:
        return request.route.service_key
    base = request._base_url
    if isinstance(base, Service) and base.find(request.target) is not None:
        return base.key
    return None


def method_key(request: HttpRequest) -> str | None:
    """Name the method of a request, in capital letters.

    >>> from aioretry_smithy import HttpRequest
    >>> method_key(HttpRequest("get", "https://example.com/orders"))
    'GET'
    """
    return None if host_key(request) is None else request.method


def host_and_method_key(request: HttpRequest) -> str | None:
    """Name the server and the method of a request, as ``host:port#METHOD``.

    >>> from aioretry_smithy import HttpRequest
    >>> host_and_method_key(HttpRequest("GET", "http://[::1]:8080/orders"))
    '[::1]:8080#GET'
    """
    host = host_key(request)
    return None if host is None else f"{host}#{request.method}"


def host_and_path_key(request: HttpRequest) -> str | None:
    """Name the server and the path of a request, as ``host:port/path``.

    The path is as on the wire, with its escapes and without the query.

    >>> from aioretry_smithy import HttpRequest
    >>> host_and_path_key(HttpRequest("GET", "https://example.com/orders?page=2"))
    'example.com:443/orders'
    """
    host = host_key(request)
    return None if host is None else f"{host}{request.url.raw_path}"


T = TypeVar("T")


# str.startswith(()) is False for every text.
_NONE_YET: Final[tuple[tuple[()], None]] = (), None


@dataclass(frozen=True, slots=True)
class OneForAll(Generic[T]):
    """A value shared by all requests (a circuit breaker, for example), and its key."""

    is_per_server: ClassVar[bool] = False
    """Whether servers have a value each."""

    key: str
    value: T

    def of(self, request: HttpRequest) -> T:
        """Return the value."""
        return self.value

    def in_use(self) -> dict[str, T]:
        """Return the value by its key."""
        return {self.key: self.value}

    def __repr__(self) -> str:
        return repr(self.value)


class PerKey(Generic[T]):
    """A value for each key, made on demand.

    Args:
        per: The key in words, such as ``host``.
        key: Makes the key of a request; None for a request that has none.
        make: Makes the value of a key.
        factory: The function of the user's that *make* is, or calls.
        kind: The class of all values, where *make* may return another.
    """

    __slots__ = ("_factory", "_key", "_newest", "_per", "_values", "is_per_server")

    is_per_server: bool
    """Whether servers have a value each."""

    def __init__(
        self,
        per: str,
        key: Callable[[HttpRequest], str | None],
        make: Callable[[str], T],
        factory: object,
        kind: type[T] | None = None,
    ) -> None:
        self._per, self._key, self._factory = per, key, factory
        self._values = BoundedMap(make, kind=kind)
        self.is_per_server = key in _PER_SERVER
        self._newest: tuple[str | tuple[()], T | None] = _NONE_YET

    def of(self, request: HttpRequest) -> T | None:
        """Return the value of a request; None for one without a key."""
        target = request.target
        beginning, value = self._newest
        # Most programs call one host at a time.
        if type(target) is str and target.startswith(beginning):
            return value
        if request.route is not None and self._key is host_key:
            return self._values.get(request.route.key)
        key = self._key(request)
        if key is None:
            return None
        value = self._values.get(key)
        if self._key in _BY_HOST and (origin := origin_of(request)) is not None:
            self._newest = f"{origin}/", value
        return value

    def get(self, key: str) -> T:
        """Return the value of a key."""
        return self._values.get(key)

    def in_use(self) -> dict[str, T]:
        """Return a copy of the current values, by key."""
        return self._values.copy()

    def __repr__(self) -> str:
        return f"per={self._per!r}, factory={name_of(self._factory)}"


_BY_HOST: Final = frozenset({host_key, service_key})
"""The keys that are the same for all requests to an origin."""

_PER_SERVER: Final = frozenset({host_key, host_and_method_key, host_and_path_key})
"""The keys that name a server, and not a service of several."""


def origin_of(request: HttpRequest) -> str | None:
    """Return the beginning that all URLs with the host of a request have.

    None where that cannot be known.
    """
    target = request.target
    if type(target) is not str or isinstance(request._base_url, Service):
        return None
    return _origin(target)


def _origin(target: str) -> str | None:
    end = target.find("/", _AFTER_SCHEME)
    origin = target[:end] if end > 0 else target
    scheme, _, authority = origin.partition("://")
    # Without a host, a URL goes to the base.
    is_whole = scheme in _SCHEMES and authority and _NO_AUTHORITY.isdisjoint(authority)
    return origin if is_whole else None


_EXPECTED: Final = (
    'hosts such as ["api.example.com"], with a port or a scheme if need be, or None'
)
_HOST: Final = re.compile(r"[a-z0-9._-]+|[0-9a-f:.]+", re.IGNORECASE)
_USUAL_PORTS: Final = {"http": 80, "https": 443}


class OwnHosts:
    """The servers that may see what a decorator adds to requests.

    Args:
        hosts: Hosts, with a port or not, or whole origins; None for the origin of the
            session's base URL, or its group.

    Raises:
        ValueError: *hosts* are none.
    """

    __slots__ = ("_places", "shown")

    shown: tuple[str, ...] | None
    """What was given, for descriptions; None for the session's own."""

    def __init__(self, hosts: Iterable[str] | None) -> None:
        self._places: frozenset[Place] | None = None
        self.shown = None
        if hosts is not None:
            if isinstance(hosts, str | bytes) or not isinstance(hosts, Iterable):
                raise bad_argument("hosts", hosts, _EXPECTED)
            given = tuple(hosts)
            if not given:
                raise bad_argument("hosts", given, _EXPECTED)
            self._places = frozenset(map(_place, given))
            self.shown = given

    @property
    def are_given(self) -> bool:
        """Whether hosts were named; otherwise they are those of the session."""
        return self._places is not None

    def have(self, request: HttpRequest, base: Base) -> bool:
        """Say whether a request goes to an own host, as far as its host is known yet.

        Args:
            request: The request. One for a group counts before its endpoint is chosen;
                :meth:`allow` tells of that.
            base: The session's base URL, or the service that its group stands for.
        """
        is_own = is_for_base(request, base)
        if self._places is None:
            return is_own
        if is_own and isinstance(base, Service) and request.route is None:
            return True
        try:
            url = request.url
        except aiohttp.InvalidURL:
            # aiohttp reports it when the request is sent.
            return False
        if not url.absolute and isinstance(base, URL):
            url = base.join(url)
        return self.allow(url, base)

    def allow(self, url: URL, base: Base) -> bool:
        """Say whether a URL belongs to an own host.

        Of the session's own group nothing can be said here: what goes there is what
        :meth:`have` has found.
        """
        if self._places is None:
            return not isinstance(base, URL) or origin_key(url) == origin_key(base)
        scheme, host, port = origin_key(url)
        if (scheme, host, port) in self._places:
            return True
        if scheme != "https" and scheme != _scheme_of(base):
            return False
        is_usual = port == _USUAL_PORTS.get(scheme)
        return (None, host, port) in self._places or (
            is_usual and (None, host, None) in self._places
        )


def is_for_base(request: HttpRequest, base: Base) -> bool:
    """Say whether a request goes to the session's own origin, or to its group."""
    if base is None:
        return False
    if isinstance(base, Service):
        if request.route is not None:
            return request.route.service_key == base.key
        return base.find(request.target) is not None
    try:
        url = request.url
    except aiohttp.InvalidURL:
        return False
    return not url.absolute or origin_key(url) == origin_key(base)


def _scheme_of(base: Base) -> str | None:
    """Return the scheme of a session's own URLs, if that is known."""
    url = base.beginning() if isinstance(base, Service) else base
    return None if url is None else origin_key(url)[0]


def _place(given: object) -> Place:
    """Read the name of a host, or an origin: scheme, host and port."""
    if isinstance(given, URL):
        given = str(given)
    if not isinstance(given, str) or not given.isprintable():
        raise bad_argument("hosts", given, _EXPECTED)
    scheme, has_scheme, rest = given.rpartition("://")
    try:
        url = URL(f"{scheme or 'https'}://{rest}")
        host, port = url.raw_host or "", url.explicit_port
    except ValueError:
        raise bad_argument("hosts", given, _EXPECTED) from None
    is_bare = url.raw_path in {"", "/"} and not (
        "@" in rest or "?" in rest or "#" in rest or rest.endswith(":")
    )
    if not is_bare or url.scheme not in _USUAL_PORTS or not _HOST.fullmatch(host):
        expected = _EXPECTED if "*" not in rest else f"{_EXPECTED}; each one by name"
        _, at, place = given.rpartition("@")
        raise bad_argument("hosts", f"****@{place}" if at else given, expected)
    if has_scheme:
        return url.scheme, host.lower(), url.port
    return None, host.lower(), port
