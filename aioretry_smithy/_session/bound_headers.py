"""Let headers go to certain servers alone, whatever redirects say.

aiohttp itself drops ``Authorization`` where a redirect leaves the origin, and no other
header.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from aiohttp.hdrs import AUTHORIZATION
from multidict import CIMultiDict

from .._request.endpoint import origin_key
from .._request.own_hosts import is_for_base
from .._retry.strategy import IDEMPOTENT_METHODS

if TYPE_CHECKING:
    import aiohttp
    from aiohttp import ClientSession
    from yarl import URL

    from .._call.call import BoundHeader, CallResources
    from .._request.arguments import Arguments
    from .._request.endpoint import Service
    from .._request.request import HttpRequest

_AUTHORIZATION: Final = AUTHORIZATION.lower()


def with_bound(
    arguments: Arguments,
    resources: CallResources,
    request: HttpRequest,
    base: URL | Service | None,
    session: ClientSession,
) -> Arguments:
    """Return the arguments of a request whose bound headers go nowhere else."""
    bound = resources.bound_headers
    headers = CIMultiDict(arguments.get("headers") or ())
    here = [header for header in bound.values() if header.name in headers]
    if not here:
        return arguments
    late: dict[str, str] = {}
    if session.trust_env and _AUTHORIZATION in bound:
        # aiohttp may find credentials in a file, and then refuses the header.
        late[_AUTHORIZATION] = headers.pop(AUTHORIZATION)
    given = arguments.get("middlewares")
    around = session._middlewares if given is None else given
    # Outside of the others: it is to see each hop, and once.
    is_own = is_for_base(request, base)
    first = _BoundHeaders(here, late, base, resources, is_own=is_own)
    resources.key_stayed = False
    return {**arguments, "headers": headers, "middlewares": (first, *around)}


class _BoundHeaders:
    """A middleware for one request: takes headers off those hops that leave.

    Args:
        bound: The headers.
        late: Those of them that are put on here, with their values.
        base: What the session's own URLs begin with.
        resources: Note where the key stays behind.
        is_own: Whether the request goes there: a decorator may have changed that.
    """

    def __init__(
        self,
        bound: list[BoundHeader],
        late: dict[str, str],
        base: URL | Service | None,
        resources: CallResources,
        *,
        is_own: bool,
    ) -> None:
        self._bound = bound
        self._late = late
        self._base = base
        self._resources = resources
        self._is_own = is_own
        self._origin: object = None
        self._has_left = False

    async def __call__(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        """Send one hop."""
        url = request.url
        origin = origin_key(url)
        self._origin = self._origin or origin
        # What another server has sent back here has no business with them either.
        self._has_left = self._has_left or origin != self._origin
        for header in self._bound:
            is_here = not self._has_left and self._may_have(header, url)
            late = self._late.get(header.name.lower())
            if is_here and late is not None:
                request.headers[header.name] = late
            elif not is_here and late is None:
                request.headers.popall(header.name, None)
                self._note_key(header.name, request.method)
        return await handler(request)

    def _may_have(self, header: BoundHeader, url: URL) -> bool:
        hosts = header.hosts
        return hosts.allow(url, self._base) if hosts.are_given else self._is_own

    def _note_key(self, name: str, method: str) -> None:
        """Note that a server which does not get the key may not get a repetition."""
        key = self._resources.key
        if key is not None and key.header == name and method not in IDEMPOTENT_METHODS:
            self._resources.key_stayed = True
