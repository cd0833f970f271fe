"""Tell a connection that broke from the other failures."""

from __future__ import annotations

import errno

import aiohttp

from .safety import peel, raised_by_caller

_BROKEN = (ConnectionResetError, ConnectionAbortedError, BrokenPipeError)
_ERRNOS = {errno.ECONNRESET, errno.ECONNABORTED, errno.EPIPE, errno.ESHUTDOWN}


def is_broken_connection(cause: BaseException) -> bool:
    """Say whether the server, or what is before it, cut a connection that was there.

    True for a disconnect before a byte of the answer and for a reset; not for a refused
    connection, a timeout, or a body that was cut. Whether a reset came before or after
    the first byte, the exception does not tell.

    Args:
        cause: The exception of the attempt.

    >>> is_broken_connection(aiohttp.ServerDisconnectedError())
    True
    """
    cause = peel(cause)
    if isinstance(cause, aiohttp.ClientConnectorError) or raised_by_caller(cause):
        return False
    if isinstance(cause, aiohttp.ServerDisconnectedError):
        # Otherwise it is the part of the head that came; a user's class may have none.
        return isinstance(getattr(cause, "message", ""), str)
    return isinstance(cause, _BROKEN) or (
        isinstance(cause, aiohttp.ClientOSError)
        and (cause.errno in _ERRNOS or isinstance(cause.__cause__, _BROKEN))
    )
