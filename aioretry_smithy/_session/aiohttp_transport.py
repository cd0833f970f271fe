"""Send requests with the session's own method, as it is without a chain."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from .._call.context import resources_of
from .._call.options import current_options, lending
from .._clock import loop_time
from .._failures.safety import mark_seen
from .._request.copied_arguments import is_unchanged
from .deadline import attempt_timeout
from .json_once import with_serialized
from .resend import MAX_RESENDS, is_tracked, request_to_resend, sending_tracked
from .transport import Transport, prepared_body
from .uploads import has_body_in, sending

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import aiohttp
    from aiohttp import ClientSession

    from .._call.context import ClientRequestContext
    from .._request.request import HttpRequest

# Arguments that may have changed, or be used up, the second time.
_BUFFERS = (bytearray, memoryview)
_NEED_CARE = {"data", "json", "upload_tracker"}


class AiohttpTransport(Transport):
    """Sends requests with aiohttp, within the limits that the context sets."""

    __slots__ = ("__weakref__", "replaced", "resends", "session")

    session: Callable[[], ClientSession | None]
    """Finds the session, which must not be kept alive from here."""

    replaced: Callable[..., Awaitable[aiohttp.ClientResponse]] | None
    """The function that replaced the session's ``_request``, if one did."""

    resends: bool
    """Whether it does what aiohttp did before the chain switched that off."""

    def __init__(self) -> None:
        self.session = _no_session
        self.replaced = None
        self.resends = False

    async def execute(
        self, ctx: ClientRequestContext, request: HttpRequest
    ) -> aiohttp.ClientResponse:
        """Send *request*, and again where a connection of the pool was broken."""
        if not self.resends:
            return await super().execute(ctx, request)
        sent, resends, started = request, 0, loop_time()
        while True:
            # A decorator may send several at a time, and each has its log.
            log = ctx.log
            try:
                return await super().execute(ctx, sent)
            except Exception as cause:
                if resends:
                    # On the broken connection, by a server that may be gone now.
                    mark_seen(cause)
                again = None
                if resends < MAX_RESENDS:
                    passed = loop_time() - started
                    again = request_to_resend(ctx, request, cause, passed)
                if again is None:
                    raise
            sent, resends = again, resends + 1
            ctx._follow_stale(log)

    def _prepare(
        self, ctx: ClientRequestContext, request: HttpRequest
    ) -> Callable[[], Awaitable[aiohttp.ClientResponse]]:
        session = self.session()
        if session is None:
            raise closed()
        ctx.log._note_defaults(session._default_headers, request)
        # At first aiohttp gets the caller's own objects, if nobody has changed them
        # while a decorator waited; later their copies.
        root, arguments = ctx.parent or ctx, request.arguments
        if not root._is_sent and is_unchanged(request.given, arguments):
            arguments = request.given
        root._is_sent = True
        timeout = attempt_timeout(ctx, request, session)
        if timeout is not None:
            arguments = {**arguments, "timeout": timeout}
        if not _NEED_CARE.isdisjoint(arguments):
            arguments = self._with_care(ctx, request, arguments)
        # Looked up now and on the class: that is where mocks put themselves.
        send = self.replaced or partial(type(session)._request, session)
        send = partial(send, request.method, request.target, **arguments)
        if self.resends and is_tracked(request):
            send = partial(sending_tracked, ctx.log, session, send)
        options = current_options()
        if options is not None and (options.blocks or options.attributes):
            send = partial(lending, options, send)
        if not has_body_in(arguments):
            return send
        json = resources_of(ctx).json if "json" in arguments else None
        return partial(sending, ctx.log, json, send)

    def _with_care(
        self,
        ctx: ClientRequestContext,
        request: HttpRequest,
        arguments: dict[str, Any],
    ) -> dict[str, Any]:
        """Return the arguments, with bodies and iterators in the form to send."""
        data = request.arguments.get("data")
        body = prepared_body(ctx, data)
        if body is not data or isinstance(arguments.get("data"), _BUFFERS):
            # aiohttp writes a buffer after a wait, in which it may change.
            arguments = {**arguments, "data": body}
        tracker = arguments.get("upload_tracker")
        if tracker is not None and not resources_of(ctx).use_once(tracker):
            arguments = {**arguments, "upload_tracker": None}
        if arguments.get("json") is not None:
            arguments = with_serialized(arguments, resources_of(ctx).json)
        return arguments


def closed() -> RuntimeError:
    """Make the error of aiohttp for a session that is closed, or gone."""
    return RuntimeError("Session is closed")


def _no_session() -> None:
    return None
