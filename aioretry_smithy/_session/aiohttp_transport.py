"""Send requests with the session's own method, as it is without a chain.

aiohttp wakes one when a connection comes back. Where that one is cancelled before it
runs, its turn is lost: the others wait beside a free place, until another connection
comes back. A hedge that has lost its race is cancelled like that.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import aiohttp
from multidict import CIMultiDict

from .._bodies.replayable_payload import SpentBodyError
from .._call.closing import refuse_as_closed
from .._call.recorder import follow_stale, note_defaults, note_request
from .._context.context import AttemptContext, ClientRequestContext
from .._context.options import Options, current_options, sending_with
from .._context.recording import count_earlier, record_response
from .._endpoints.visit import move_resend
from .._failures.failure import judge
from .._request.arguments import Arguments, is_unchanged
from .._request.request import HttpRequest, RoutedRequest
from .deadline import AttemptTimeouts
from .middlewares import repeats_hops, with_bound, with_route
from .request_classes import has_body_in, sending
from .session_chain import version_of
from .transport import (
    MAX_RESENDS,
    ShownBody,
    Transport,
    body_to_send,
    failure_to_raise,
    follow_body,
    is_tracked,
    is_watched,
    record_unsent,
    request_to_resend,
    sending_tracked,
    take_shown,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from aiohttp import ClientSession

    from .._call.call import Call
    from .._call.record import Record


def wake_next(session: ClientSession | None) -> None:
    """Wake the next request of a pool that has a free place, if one waits there."""
    connector = None if session is None else session.connector
    if isinstance(connector, aiohttp.BaseConnector):
        connector._release_waiter()


class AiohttpTransport(Transport):
    """Sends requests with aiohttp, within the limits that the context sets."""

    session: Callable[[], ClientSession | None]
    """Finds the session, which must not be kept alive from here."""

    replaced: Callable[..., Awaitable[aiohttp.ClientResponse]] | None
    """The function that replaced the session's ``_request``, if one did."""

    resends: bool = False
    """Whether the transport resends stale connections in place of aiohttp."""

    timeouts: AttemptTimeouts
    """Makes the timeouts of attempts."""

    def __init__(self) -> None:
        self.session = lambda: None  # none yet
        self.replaced = None
        self.timeouts = AttemptTimeouts()

    async def recover(
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
                    record.was_sent = True
                    if record_response(call, record, response):
                        follow_body(ctx, response)
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
            has_body = (
                "data" in arguments
                or "json" in arguments
                or "upload_tracker" in arguments
            )
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
            arguments = {**arguments, **timeout}
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
