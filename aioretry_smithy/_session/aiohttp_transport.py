"""Send requests with the session's own method, as it is without a chain."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NoReturn

from multidict import CIMultiDict

from .._bodies.replayable_payload import SpentBodyError
from .._call.recorder import (
    follow_stale,
    note_defaults,
    note_request,
)
from .._context.context import AttemptContext, current_options, lending
from .._context.recording import count_earlier
from .._endpoints.visit import move_resend
from .._failures.failure import judge
from .._request.arguments import is_unchanged
from .._request.request import RoutedRequest
from .bound_headers import with_bound
from .deadline import AttemptTimeouts
from .defaults import version_of
from .pool_waiters import wake_next
from .resend import (
    MAX_RESENDS,
    is_tracked,
    repeats_hops,
    request_to_resend,
    sending_tracked,
)
from .routed_arguments import with_route
from .shown_body import ShownBody, is_watched, shown_body, take_shown
from .transport import Transport, answered, judged, prepared_body, refused
from .uploads import has_body_in, sending

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import aiohttp
    from aiohttp import ClientSession

    from .._call.call import Call
    from .._call.record import Record
    from .._context.context import ClientRequestContext, Options
    from .._request.arguments import Arguments
    from .._request.request import HttpRequest

# Arguments that may have changed, or be used up, the second time.
_BUFFERS = (bytearray, memoryview)
_ONCE = frozenset({"data", "json", "upload_tracker"})


class AiohttpTransport(Transport):
    """Sends requests with aiohttp, within the limits that the context sets."""

    __slots__ = ("__weakref__", "replaced", "resends", "session", "timeouts")

    session: Callable[[], ClientSession | None]
    """Finds the session, which must not be kept alive from here."""

    replaced: Callable[..., Awaitable[aiohttp.ClientResponse]] | None
    """The function that replaced the session's ``_request``, if one did."""

    resends: bool
    """Whether it does what aiohttp did before the chain switched that off."""

    timeouts: AttemptTimeouts
    """Makes the timeouts of attempts."""

    def __init__(self) -> None:
        self.session = lambda: None  # none yet
        self.timeouts = AttemptTimeouts()
        self.replaced = None
        self.resends = False

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
                cause = judged(ctx, cause)
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
                    answered(ctx, call, record, response)
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
            refused(ctx, cause)
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
        if arguments.get("data") is not None:
            arguments = _with_data(self, call, request, session, arguments)
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
        """Send a request with a body, or with options around it."""
        send: Callable[[], Awaitable[aiohttp.ClientResponse]]
        request_method = self.replaced or partial(type(session)._request, session)
        shown = arguments.get("data")
        if isinstance(shown, ShownBody):
            arguments = {**arguments, "data": shown.shown}
        else:
            shown = None
        send = partial(request_method, request.spelling, request.target, **arguments)
        if options is not None and (options.blocks or options.attributes):
            send = partial(lending, options, send)
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


def _with_data(
    transport: AiohttpTransport,
    call: Call,
    request: HttpRequest,
    session: ClientSession,
    arguments: Arguments,
) -> Arguments:
    """Return the arguments, with a body in the form to send."""
    given, data = arguments["data"], request.arguments.get("data")
    if is_watched(session, transport.replaced) and take_shown(session):
        body = shown_body(call, given, data)
    else:
        body = prepared_body(call, data)
        if body is data and not isinstance(given, _BUFFERS):
            # aiohttp writes a buffer after a wait, in which it may change.
            return arguments
    return arguments if body is given else {**arguments, "data": body}


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


def refuse_as_closed() -> NoReturn:
    """Raise the error of aiohttp for a session that is closed, or gone."""
    raise RuntimeError("Session is closed")
