"""Connect to the address of an endpoint; all else of aiohttp goes by its name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from aiohttp.client_reqrep import ConnectionKey
from multidict import CIMultiDict

from .._request.endpoint import keep, origin_key

if TYPE_CHECKING:
    import aiohttp
    from yarl import URL

    from .._request.endpoint import Endpoint

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
        """Send a request; what was changed for that is as before when it ends."""
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
