"""Add to the arguments of a request what it takes to reach one of several servers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp.hdrs import AUTHORIZATION
from multidict import CIMultiDict

from .._request.endpoint import origin_key
from .._request.request import with_header

if TYPE_CHECKING:
    import aiohttp
    from aiohttp import ClientSession

    from .._request.arguments import Arguments
    from .._request.request import Goal, HttpRequest


def with_route(
    request: HttpRequest, route: Goal, session: ClientSession, arguments: Arguments
) -> Arguments:
    """Return the arguments to send a request to a server, with its credentials."""
    inner: list[aiohttp.ClientMiddlewareType] = []
    auth = session.auth
    if auth is not None and _wants_credentials(request, session, arguments):
        if session.trust_env:
            # aiohttp itself may find others in a file, and then refuses the header.
            inner.append(_Credentials(route, auth.encode()))
        else:
            arguments = with_header(arguments, AUTHORIZATION, auth.encode())
    if route.middleware is not None:
        inner.append(route.middleware)
    if not inner:
        return arguments
    given = arguments.get("middlewares")
    around = session._middlewares if given is None else given
    return {**arguments, "middlewares": (*around, *inner)}


def _wants_credentials(
    request: HttpRequest, session: ClientSession, arguments: Arguments
) -> bool:
    """Say whether a request is to have the session's credentials, but from aiohttp not.

    aiohttp adds them for the origin of the base URL alone.
    """
    base, url = session._base_url_origin, request.url
    return (
        base is not None
        and base != url.origin()
        and arguments.get("auth") is None
        and url.raw_user is None
        and AUTHORIZATION not in request.headers
        and AUTHORIZATION not in CIMultiDict(session._default_headers)
    )


class _Credentials:
    """A middleware that sends the session's credentials to one origin."""

    def __init__(self, route: Goal, credentials: str) -> None:
        self._origin = origin_key(route.endpoint.url)
        self._credentials = credentials

    async def __call__(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        """Add the credentials to a hop to their own origin."""
        if origin_key(request.url) == self._origin:
            request.headers[AUTHORIZATION] = self._credentials
        return await handler(request)
