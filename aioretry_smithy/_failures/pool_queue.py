"""Tell a time limit that passed in the queue of the session's own connection pool."""

from __future__ import annotations

from typing import Final

import aiohttp

from .failure import failure_of, judge

IN_POOL: Final = ", and was in the pool's queue"
"""Ends the text about a time limit that passed there."""

TOO_LATE: Final = "no free connection in the pool in time"
"""Is said in place of what aiohttp says then."""

# What aiohttp says when its limit for a connection has passed, which covers the queue.
_NO_CONNECTION: Final = "Connection timeout to host "


def note_wait_in_pool(cause: BaseException) -> None:
    """Note that time ran out in that queue.

    aiohttp says that the server gave no connection, or nothing; its text is replaced.
    """
    judge(cause).queue = "pool"
    text = str(cause)
    if isinstance(cause, aiohttp.ConnectionTimeoutError):
        if text.startswith(_NO_CONNECTION):
            cause.args = (f"{TOO_LATE}, for {text.removeprefix(_NO_CONNECTION)}",)
    elif type(cause) is TimeoutError and not text:
        cause.args = (TOO_LATE,)


def was_in_pool(cause: BaseException | None) -> bool:
    """Say whether time ran out in that queue."""
    return failure_of(cause).queue == "pool"


def where_passed(cause: BaseException | None) -> str:
    """Return a few words for where time ran out, if it was in that queue; else none."""
    return "in the pool's queue" if was_in_pool(cause) else ""
