"""Middlewares of aiohttp for credentials, bound headers and repeated redirects.

aiohttp itself drops ``Authorization`` where a redirect leaves the origin, and no other
header.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from aiohttp.hdrs import AUTHORIZATION
from multidict import CIMultiDict

from .._request.endpoint import Service, origin_key
from .._request.keys import is_for_base
from .._request.request import HttpRequest, Route, with_header
from .._retry.strategy import IDEMPOTENT_METHODS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import aiohttp
    from aiohttp import ClientSession
    from yarl import URL

    from .._call.call import BoundHeader, CallResources
    from .._request.arguments import Arguments


def middlewares_of(
    arguments: Arguments, session: ClientSession
) -> Sequence[aiohttp.ClientMiddlewareType]:
    """Return the middlewares of a request: the caller's own, else the session's."""
    given: Sequence[aiohttp.ClientMiddlewareType] | None = arguments.get("middlewares")
    return session._middlewares if given is None else given


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
    around = middlewares_of(arguments, session)
    # Outside of the others: it is to see each hop, and once.
    is_own = is_for_base(request, base)
    first = _BoundHeaders(here, late, base, resources, is_own=is_own)
    resources.key_stayed = False
    return {**arguments, "headers": headers, "middlewares": (first, *around)}


class _BoundHeaders:
    """A middleware that removes bound headers on redirects to a different origin.

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
        """Send a request to a hop of a redirect chain."""
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


def with_route(
    request: HttpRequest,
    route: Route,
    session: ClientSession,
    arguments: Arguments,
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
    around = middlewares_of(arguments, session)
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

    def __init__(self, route: Route, credentials: str) -> None:
        self._origin = origin_key(route.endpoint.url)
        self._credentials = credentials

    async def __call__(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        """Add the credentials to a hop to their own origin."""
        if origin_key(request.url) == self._origin:
            request.headers[AUTHORIZATION] = self._credentials
        return await handler(request)


class AnsweredHops:
    """A middleware that replays answers of earlier hops.

    So that a redirect whose second hop broke does not send the first hop again. It
    stands outside of the caller's middlewares, which have seen these hops.
    """

    def __init__(self, responses: Iterable[aiohttp.ClientResponse]) -> None:
        self._responses = iter(responses)

    async def __call__(self, request: Any, handler: Any) -> aiohttp.ClientResponse:
        """Return the next known response, then send the rest."""
        response = next(self._responses, None)
        if response is None:
            return await handler(request)  # type: ignore[no-any-return]
        # The jar has its cookies, which may have changed since.
        _ = response.cookies
        response._raw_cookie_headers = None
        return response


def repeats_hops(request: HttpRequest) -> bool:
    """Say whether a request repeats a hop after redirects."""
    around = request.arguments.get("middlewares") or ()
    return any(isinstance(each, AnsweredHops) for each in around)
