"""Tell a connection that was used before from a fresh one, after it broke.

aiohttp does not say which one a request got. So each request marks its connection as
used, and keeps in mind whether that was marked before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import aiohttp
from aiohttp.client_proto import ResponseHandler

from .._failures.frames import REQUEST, SENDING, Trace

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from aiohttp import ClientResponse, ClientSession

_USED: Final = "_aioretry_smithy_used"
_REUSED: Final = "_aioretry_smithy_reused"
_CONNECTOR: Final = "aiohttp.connector"

# Before 3.14 the last of them is not among those that aiohttp itself sends again.
_BROKEN: Final = (
    aiohttp.ClientOSError,
    aiohttp.ServerDisconnectedError,
    aiohttp.ClientConnectionResetError,
)


class BrokenConnection(NamedTuple):
    """A connection of aiohttp's that broke before the headers of an answer."""

    was_reused: bool | None
    """Whether it had carried a request before; None where nobody can know."""

    hops: Sequence[ClientResponse]
    """The redirects that were answered before."""

    session: ClientSession
    """The session that sent the request."""


def marks_connection(
    send: Callable[..., Awaitable[ClientResponse]],
) -> Callable[..., Awaitable[ClientResponse]]:
    """Make the method of a request that marks the connection it is sent on."""

    # Not a coroutine of its own: every request comes here.
    def marked(self: Any, conn: Any) -> Awaitable[ClientResponse]:
        facts = conn.protocol.__dict__
        self.__dict__[_REUSED] = _USED in facts
        facts[_USED] = True
        return send(self, conn)

    return marked


def mark_pool(connector: object) -> None:
    """Mark the connections that a session has used before its chain was put in."""
    if not isinstance(connector, aiohttp.BaseConnector):
        # The session is closed, or has a mock.
        return
    pooled = [each[0] for pool in connector._conns.values() for each in pool]
    # Among the acquired ones are places for connections that are being made.
    for protocol in [*pooled, *connector._acquired]:
        if isinstance(protocol, ResponseHandler):
            vars(protocol)[_USED] = True


def broken_connection(cause: BaseException) -> BrokenConnection | None:
    """Return what is known of a connection that broke; None for any other failure.

    A mock's exception, one of a middleware and a refused connection are others.
    """
    if not isinstance(cause, _BROKEN) or isinstance(
        cause, aiohttp.ClientConnectorError
    ):
        return None
    frames = Trace(cause).frames
    places = [place for place, _ in frames]
    if REQUEST not in places or SENDING not in places:
        return None
    variables = frames[places.index(REQUEST)][1].f_locals
    hops = variables.get("history")
    if not isinstance(hops, list):
        # Renamed some day: then nobody knows what was answered.
        return None
    session = variables["self"]
    sent = len(places) - 1 - places[::-1].index(SENDING)
    if any(module == _CONNECTOR for module, _ in places[sent:]):
        # By a proxy, before the request had a connection.
        return BrokenConnection(False, tuple(hops), session)
    request = frames[sent][1].f_locals.get("req")
    was_reused = getattr(request, _REUSED, None)
    is_of_middleware = REQUEST in places[places.index(REQUEST) + 1 : sent]
    if is_of_middleware or (was_reused is False and not session.connector_owner):
        # It says nothing about the connection of the request itself; or others use the
        # connector, too, and mark nothing.
        was_reused = None
    return BrokenConnection(was_reused, tuple(hops), session)
