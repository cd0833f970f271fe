"""Note on an exception what is known of its request, for those who judge it."""

from __future__ import annotations

from typing import Final

from .groups import peel

QUEUED: Final = "_aioretry_smithy_queued"

_CONNECTION: Final = "_aioretry_smithy_connection_failed"
_NO_SERVER: Final = "_aioretry_smithy_no_server"
_RAISED_BY_CALLER: Final = "_aioretry_smithy_raised_by_caller"
_SEEN: Final = "_aioretry_smithy_seen"
_SIBLING_TIMED_OUT: Final = "_aioretry_smithy_sibling_timed_out"


def mark_reached_server(cause: BaseException) -> None:
    """Note that the server has seen the request before the attempt failed.

    For example it answered an earlier hop with a redirect, or an earlier send.
    """
    _marks_on(cause)[_SEEN] = True


def reached_server(cause: BaseException) -> bool:
    """Say whether :func:`mark_reached_server` was called for an exception."""
    return bool(_marks_on(cause).get(_SEEN, False))


def mark_raised_by_caller(cause: BaseException) -> None:
    """Note that the caller's own object raised the exception, not the transport."""
    _marks_on(cause)[_RAISED_BY_CALLER] = True


def raised_by_caller(cause: BaseException) -> bool:
    """Say whether :func:`mark_raised_by_caller` was called for an exception."""
    return bool(_marks_on(cause).get(_RAISED_BY_CALLER, False))


def mark_connection_failed(cause: BaseException, *, is_made: bool) -> None:
    """Note that a bug of what is below aiohttp broke a connection.

    Args:
        cause: The exception, of a class that means a mistake of the caller's else.
        is_made: Whether the connection was there, so that something may have been sent.
    """
    _marks_on(cause)[_CONNECTION] = is_made


def connection_failed(cause: BaseException) -> bool:
    """Say whether :func:`mark_connection_failed` was called for an exception."""
    return _CONNECTION in _marks_on(cause)


def had_no_connection(cause: BaseException) -> bool:
    """Say whether that was before there was a connection."""
    return _marks_on(cause).get(_CONNECTION) is False


def mark_of_no_server(cause: BaseException) -> None:
    """Note that no server had a part in it: a hook or a middleware has failed."""
    _marks_on(cause)[_NO_SERVER] = True


def is_of_no_server(cause: BaseException | None) -> bool:
    """Say whether :func:`mark_of_no_server` was called for an exception."""
    return cause is not None and _NO_SERVER in _marks_on(cause)


def mark_queued(cause: BaseException, queue: str = "limit") -> None:
    """Note that the request ended in a queue: of the connection pool, or of a limit."""
    _marks_on(cause)[QUEUED] = queue


def was_queued(cause: BaseException | None) -> bool:
    """Say whether a request ended in a queue of the connection pool, or of a limit.

    The server had no part in that.
    """
    return cause is not None and QUEUED in _marks_on(cause)


def mark_sibling_timed_out(cause: BaseException) -> None:
    """Note that the deadline of the call cut another request for the same answer."""
    _marks_on(cause)[_SIBLING_TIMED_OUT] = True


def sibling_timed_out(cause: BaseException | None) -> bool:
    """Say whether :func:`mark_sibling_timed_out` was called for an exception."""
    return cause is not None and _SIBLING_TIMED_OUT in _marks_on(cause)


def stands_for(error: BaseException, cause: BaseException | None) -> None:
    """Copy the marks about the queue and the server from *cause* to *error*."""
    marks = {} if cause is None else _marks_on(cause)
    vars(error).update((mark, marks[mark]) for mark in (QUEUED, _SEEN) if mark in marks)


def _marks_on(cause: BaseException) -> dict[str, object]:
    """Return where the marks are: on what a group of one stands for."""
    return vars(peel(cause))
