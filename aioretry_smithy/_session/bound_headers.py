"""Let headers go to certain servers alone, whatever redirects say.

aiohttp itself drops ``Authorization`` where a redirect leaves the origin, and no other
header.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from aiohttp.hdrs import AUTHORIZATION
from multidict import CIMultiDict

from .._request.endpoint import origin_key

if TYPE_CHECKING:
    from collections.abc import Mapping

    import aiohttp
    from aiohttp import ClientSession
    from yarl import URL

    from .._call.stamps import BoundHeader
    from .._request.copied_arguments import Arguments
    from .._request.service import Service

_AUTHORIZATION: Final = AUTHORIZATION.lower()


def with_bound(
    arguments: Arguments,
    bound: Mapping[str, BoundHeader],
    base: URL | Service | None,
    session: ClientSession,
) -> Arguments:
    """Return the arguments of a request whose bound headers go nowhere else."""
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
    first = _BoundHeaders(here, late, base)
    return {**arguments, "headers": headers, "middlewares": (first, *around)}


class _BoundHeaders:
    """A middleware for one request: takes headers off those hops that leave.

    Args:
        bound: The headers.
        late: Those of them that are put on here, with their values.
        base: What the session's own URLs begin with.
    """

    def __init__(
        self,
        bound: list[BoundHeader],
        late: dict[str, str],
        base: URL | Service | None,
    ) -> None:
        self._bound = bound
        self._late = late
        self._base = base
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
            is_here = not self._has_left and header.hosts.allow(url, self._base)
            late = self._late.get(header.name.lower())
            if is_here and late is not None:
                request.headers[header.name] = late
            elif not is_here and late is None:
                request.headers.popall(header.name, None)
        return await handler(request)
