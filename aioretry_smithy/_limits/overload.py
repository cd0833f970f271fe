"""Find signs of an overloaded server in the outcome of a request."""

from __future__ import annotations

import aiohttp

from .._failures.safety import (
    RetrySafety,
    is_timeout,
    peel,
    safety_by_kind,
    was_queued,
)

_OVERLOADED = frozenset({429, 503})
_SERVER_ERROR = 500
_LOST = (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError, ConnectionError)
_NOT_THE_LOAD = (aiohttp.ClientConnectorDNSError, aiohttp.ClientSSLError)


def was_dropped(cause: BaseException) -> bool:
    """Say whether the server, or its network, dropped a request for its load.

    By a timeout, or a connection that was refused, cut or reset. Not by a wait in a
    queue of this side, an unknown name, a bad certificate or a mistake of the caller's.
    """
    cause = peel(cause)
    if was_queued(cause) or safety_by_kind(cause) is RetrySafety.NO:
        return False
    is_lost = isinstance(cause, _LOST) and not isinstance(cause, _NOT_THE_LOAD)
    return is_lost or is_timeout(cause)


def is_overloaded(status: int) -> bool | None:
    """Say whether an answer is a drop; None where it is neither that nor a success."""
    if status in _OVERLOADED:
        return True
    return None if status >= _SERVER_ERROR else False
