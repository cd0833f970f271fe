"""Know which requests go through a proxy, which looks names up by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.request import getproxies, proxy_bypass

if TYPE_CHECKING:
    from yarl import URL

    from .._call.call import Call
    from .._request.endpoint import Service
    from .._request.request import HttpRequest

# aiohttp cannot use these.
_UNUSABLE: Final = ("https:", "wss:")


def goes_through_proxy(
    call: Call, request: HttpRequest, service: Service, asked: URL
) -> bool:
    """Say whether aiohttp will send a request for something *asked* through a proxy."""
    if request.arguments.get("proxy") is not None:
        return True
    session = call.session
    return session is not None and (
        session._default_proxy is not None
        or (session.trust_env and _has_proxy(service.whole(asked)))
    )


def _has_proxy(url: URL) -> bool:
    """Say whether the environment names a proxy for a URL, as aiohttp goes by it."""
    proxy = getproxies().get(url.scheme, "")
    return bool(proxy) and not (
        proxy.lower().startswith(_UNUSABLE) or proxy_bypass(url.host or "")
    )
