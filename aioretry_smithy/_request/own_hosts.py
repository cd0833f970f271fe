"""Tell a session's own servers from strangers, who get no token and no key."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import aiohttp
from yarl import URL

from .._errors import bad_argument
from .endpoint import Service, origin_key

if TYPE_CHECKING:
    from .request import HttpRequest

    Base = URL | Service | None
    Place = tuple[str | None, str, int | None]

_EXPECTED: Final = (
    'hosts such as ["api.example.com"], with a port or a scheme if need be, or None'
)
_HOST: Final = re.compile(r"[a-z0-9._-]+|[0-9a-f:.]+", re.IGNORECASE)
_SCHEMES: Final = {"http": 80, "https": 443}


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
        is_usual = port == _SCHEMES.get(scheme)
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
    if not is_bare or url.scheme not in _SCHEMES or not _HOST.fullmatch(host):
        expected = _EXPECTED if "*" not in rest else f"{_EXPECTED}; each one by name"
        _, at, place = given.rpartition("@")
        raise bad_argument("hosts", f"****@{place}" if at else given, expected)
    if has_scheme:
        return url.scheme, host.lower(), url.port
    return None, host.lower(), port
