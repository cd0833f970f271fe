"""Send requests with the session's own method, as it is without a chain."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from .._call.context import resources_of
from .deadline import attempt_timeout
from .json_once import with_serialized
from .transport import Transport, prepared_body
from .uploads import has_body_in, sending

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import aiohttp
    from aiohttp import ClientSession

    from .._call.context import ClientRequestContext
    from .._request.request import HttpRequest

# Arguments that may have changed, or be used up, the second time.
_NEED_CARE = {"data", "json", "upload_tracker"}


class AiohttpTransport(Transport):
    """Sends requests with aiohttp, within the limits that the context sets."""

    __slots__ = ("__weakref__", "replaced", "session")

    session: Callable[[], ClientSession | None]
    """Finds the session, which must not be kept alive from here."""

    replaced: Callable[..., Awaitable[aiohttp.ClientResponse]] | None
    """The function that replaced the session's ``_request``, if one did."""

    def __init__(self) -> None:
        self.session = _no_session
        self.replaced = None

    def _prepare(
        self, ctx: ClientRequestContext, request: HttpRequest
    ) -> Callable[[], Awaitable[aiohttp.ClientResponse]]:
        session = self.session()
        if session is None:
            raise closed()
        # At first aiohttp gets the caller's own objects; later their copies.
        root = ctx.parent or ctx
        arguments = request.arguments if root._is_sent else request.given
        root._is_sent = True
        timeout = attempt_timeout(ctx, request, session)
        if timeout is not None:
            arguments = {**arguments, "timeout": timeout}
        if not _NEED_CARE.isdisjoint(arguments):
            arguments = self._with_care(ctx, request, arguments)
        # Looked up now and on the class: that is where mocks put themselves.
        send = self.replaced or partial(type(session)._request, session)
        send = partial(send, request.method, request.target, **arguments)
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
        if body is not data:
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
