"""Know which requests go through a proxy, which looks names up by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.request import getproxies, proxy_bypass

import aiohttp

from .._failures.safety import peel

if TYPE_CHECKING:
    from collections.abc import Callable

    from yarl import URL

    from .._call.call import Call
    from .._request.request import HttpRequest

_OF_PROXIES: Final = (aiohttp.ClientProxyConnectionError, aiohttp.ClientHttpProxyError)
# aiohttp cannot use these.
_UNUSABLE: Final = ("https:", "wss:")


def goes_through_proxy(
    call: Call, request: HttpRequest, url: Callable[[], URL]
) -> bool:
    """Say whether aiohttp will send a request through a proxy.

    Args:
        call: The call.
        request: The request.
        url: Finds the URL that it is sent to.
    """
    if request.arguments.get("proxy") is not None:
        return True
    session = call.session
    return session is not None and (
        session._default_proxy is not None or (session.trust_env and _has_proxy(url()))
    )


def _has_proxy(url: URL) -> bool:
    """Say whether the environment names a proxy for a URL, as aiohttp goes by it."""
    proxy = getproxies().get(url.scheme, "")
    return bool(proxy) and not (
        proxy.lower().startswith(_UNUSABLE) or proxy_bypass(url.host or "")
    )


def is_of_proxy(cause: BaseException) -> bool:
    """Say whether a proxy, not the server, is what failed."""
    return isinstance(peel(cause), _OF_PROXIES)
