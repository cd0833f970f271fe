"""Send requests with the session's own method, as it is without a chain.

aiohttp wakes one when a connection comes back. Where that one is cancelled before it
runs, its turn is lost: the others wait beside a free place, until another connection
comes back. A hedge that has lost its race is cancelled like that.

aiohttp itself drops ``Authorization`` where a redirect leaves the origin, and no other
header.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import aiohttp
from aiohttp.hdrs import AUTHORIZATION
from multidict import CIMultiDict

from .._bodies.replayable_payload import SpentBodyError
from .._call.closing import refuse_as_closed
from .._call.recorder import follow_stale, note_defaults, note_request
from .._context.context import AttemptContext
from .._context.options import current_options, sending_with
from .._context.recording import count_earlier
from .._endpoints.visit import move_resend
from .._failures.failure import judge
from .._request.arguments import Arguments, is_unchanged
from .._request.endpoint import Service, origin_key
from .._request.keys import is_for_base
from .._request.request import Destination, HttpRequest, RoutedRequest, with_header
from .._retry.strategy import IDEMPOTENT_METHODS
from .deadline import AttemptTimeouts, version_of
from .request_classes import has_body_in, sending
from .transport import (
    MAX_RESENDS,
    ShownBody,
    Transport,
    body_to_send,
    failure_to_raise,
    is_tracked,
    is_watched,
    middlewares_of,
    record_answer,
    record_unsent,
    repeats_hops,
    request_to_resend,
    sending_tracked,
    take_shown,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from aiohttp import ClientSession
    from yarl import URL

    from .._call.call import BoundHeader, Call, CallResources
    from .._call.record import Record
    from .._context.context import ClientRequestContext
    from .._context.options import Options


def wake_next(session: ClientSession | None) -> None:
    """Wake the next request of a pool that has a free place, if one waits there."""
    connector = None if session is None else session.connector
    if isinstance(connector, aiohttp.BaseConnector):
        connector._release_waiter()


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
    route: Destination,
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

    def __init__(self, route: Destination, credentials: str) -> None:
        self._origin = origin_key(route.endpoint.url)
        self._credentials = credentials

    async def __call__(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        """Add the credentials to a hop to their own origin."""
        if origin_key(request.url) == self._origin:
            request.headers[AUTHORIZATION] = self._credentials
        return await handler(request)


# Arguments that may have changed, or be used up, the second time.
_ONCE = frozenset({"data", "json", "upload_tracker"})


class AiohttpTransport(Transport):
    """Sends requests with aiohttp, within the limits that the context sets."""

    session: Callable[[], ClientSession | None]
    """Finds the session, which must not be kept alive from here."""

    replaced: Callable[..., Awaitable[aiohttp.ClientResponse]] | None = None
    """The function that replaced the session's ``_request``, if one did."""

    resends: bool = False
    """Whether the transport resends stale connections in place of aiohttp."""

    timeouts: AttemptTimeouts
    """Makes the timeouts of attempts."""

    def __init__(self) -> None:
        self.session = lambda: None  # none yet
        self.timeouts = AttemptTimeouts()

    async def failed(
        self, ctx: ClientRequestContext, request: HttpRequest, cause: BaseException
    ) -> aiohttp.ClientResponse:
        """Send *request* again where a connection of the pool was broken."""
        call, record = ctx.call, ctx.record
        wake_next(call.session or self.session())
        resends, broken, stale, outcome = 0, None, record, record.outcome
        try:
            note_request(ctx, request)
            while True:
                cause = failure_to_raise(ctx, cause)
                if broken is not None:
                    if isinstance(cause, SpentBodyError):
                        count_earlier(ctx, stale, outcome)
                        raise broken
                    # On the broken connection, by a server that may be gone now.
                    judge(cause).reached_server = True
                again = None
                may_resend = self.resends and resends < MAX_RESENDS
                if may_resend and isinstance(cause, Exception):
                    again = request_to_resend(call, record, request, cause)
                if again is None:
                    raise cause
                resends, broken = resends + 1, cause
                stale, outcome = record, record.outcome
                # Without attempts all requests share the record of the call.
                if isinstance(ctx, AttemptContext):
                    ctx.record = record = follow_stale(call, record)
                request, again = _moved(ctx, stale, request, again)
                try:
                    response = await self.start(ctx, again)
                except BaseException as failure:
                    cause = failure
                else:
                    record_answer(ctx, call, record, response)
                    return response
        finally:
            # Their tracebacks have this frame: no cycle.
            del broken, cause

    def start(
        self, ctx: ClientRequestContext, request: HttpRequest
    ) -> Awaitable[aiohttp.ClientResponse]:
        """Begin to send the request."""
        call = ctx.call
        try:
            session = call.session or self.session()
            if session is None:
                refuse_as_closed()
            arguments = self._prepared(ctx, call, request, session)
            has_body = not _ONCE.isdisjoint(arguments)
            if has_body:
                arguments = self._with_body(call, request, session, arguments)
        except BaseException as cause:
            record_unsent(ctx, cause)
            raise
        options = current_options()
        if has_body or options is not None:
            return self._sending(ctx, request, session, arguments, options)
        if self.replaced is not None:
            return self.replaced(request.spelling, request.target, **arguments)
        # Looked up now and on the class: that is where mocks put themselves.
        kind = type(session)
        return kind._request(session, request.spelling, request.target, **arguments)

    def _prepared(
        self,
        ctx: ClientRequestContext,
        call: Call,
        request: HttpRequest,
        session: ClientSession,
    ) -> Arguments:
        """Return the arguments to send a request with right now, but for its body."""
        record = ctx.record
        if request is not ctx.request or record.sent_request is not None:
            note_request(ctx, request)
        headers = session._default_headers
        if version_of(headers) != call.defaults.version:
            note_defaults(call, record, CIMultiDict(headers), request)
        arguments = request.arguments
        if request.given is not arguments:
            arguments = _arguments(call, request)
        timeout = self.timeouts.of(call, record, request, session, ctx.timeout)
        if timeout is not None:
            arguments = {**arguments, "timeout": timeout}
        if request.route is not None:
            arguments = with_route(request, request.route, session, arguments)
        if call.resources is not None and call.resources.bound_headers:
            base = call.defaults.base_url
            arguments = with_bound(arguments, call.resources, request, base, session)
        return arguments

    def _with_body(
        self,
        call: Call,
        request: HttpRequest,
        session: ClientSession,
        arguments: Arguments,
    ) -> Arguments:
        """Return the arguments with the body to send now, and its tracker once."""
        given = arguments.get("data")
        if given is not None:
            data = request.arguments.get("data")
            shown = is_watched(session, self.replaced) and take_shown(session)
            body = body_to_send(call, given, data, shown=shown)
            if body is not given:
                arguments = {**arguments, "data": body}
        tracker = arguments.get("upload_tracker")
        if tracker is not None and (
            call.is_over or not call.own_resources().use_once(tracker)
        ):
            arguments = {**arguments, "upload_tracker": None}
        return arguments

    def _sending(
        self,
        ctx: ClientRequestContext,
        request: HttpRequest,
        session: ClientSession,
        arguments: Arguments,
        options: Options | None,
    ) -> Awaitable[aiohttp.ClientResponse]:
        """Send a request with a body, or in the context of options."""
        send: Callable[[], Awaitable[aiohttp.ClientResponse]]
        request_method = self.replaced or partial(type(session)._request, session)
        shown = arguments.get("data")
        if isinstance(shown, ShownBody):
            arguments = {**arguments, "data": shown.shown}
        else:
            shown = None
        send = partial(request_method, request.spelling, request.target, **arguments)
        if options is not None and (options.blocks or options.attributes):
            send = partial(sending_with, options, send)
        if self.resends and is_tracked(request):
            send = partial(sending_tracked, ctx.record, session, send)
        if not has_body_in(arguments):
            return send()
        json = ctx.call.own_resources().json if "json" in arguments else None
        return sending(ctx.record, json, send, shown)


def _moved(
    ctx: ClientRequestContext, stale: Record, request: HttpRequest, again: HttpRequest
) -> tuple[HttpRequest, HttpRequest]:
    """Return a request and how to send it again, elsewhere if its endpoint is out."""
    if stale.route is None:
        return request, again
    may_move = not repeats_hops(again)
    moved = move_resend(ctx, stale, request, may_move=may_move)
    if moved is not request:
        again = RoutedRequest.to(moved.route, moved.url, again)
    return moved, again


def _arguments(call: Call, request: HttpRequest) -> Arguments:
    """Return the caller's own arguments, or their copies.

    At first aiohttp gets the caller's own objects, if nobody has changed them while a
    decorator waited; later their copies.
    """
    if call.has_begun_to_send:
        return request.arguments
    call.has_begun_to_send = True
    is_same = is_unchanged(request.given, request.arguments)
    return request.given if is_same else request.arguments
