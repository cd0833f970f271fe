"""Tell bugs of what is below aiohttp, of hooks and middlewares, and full pools."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import aiohttp
from aiohttp.http_exceptions import PayloadEncodingError

from .._errors import raised_from
from .failure import failure_of, judge, peel
from .frames import REQUEST, SENDING, Frames, frames_of
from .hints import RetryInfo

if TYPE_CHECKING:
    from types import FrameType


_BUGS: Final = frozenset({AssertionError, AttributeError, RuntimeError})
"""The classes, and none below them, of what goes wrong inside a library."""

_LIBRARIES: Final = frozenset(
    {
        "aiodns",
        "aiohappyeyeballs",
        "aiohttp",
        "asyncio",
        "concurrent",
        "pycares",
        "selectors",
        "socket",
        "ssl",
        "threading",
        "uvloop",
        "winloop",
    }
)
"""Packages between a request of aiohttp and the socket."""

_LOOPS: Final = frozenset({"asyncio", "uvloop", "winloop"})
_SENDERS: Final = frozenset({"aiohttp.base_protocol", "aiohttp.http_writer"})
_CONNECTING: Final = ("aiohttp.connector", "connect")
_HOOKS: Final = "aiohttp.tracing"


def broken_connection_is_made(cause: BaseException) -> bool | None:
    """Say whether there was a connection that a bug of a library broke.

    False if it broke while connecting; None where no such bug did. Afterwards only what
    event loops raise is one: aiohttp itself meets what the caller has given it.
    """
    for link in (cause, cause.__cause__):
        if link is None or type(link) not in _BUGS:
            continue
        frames = frames_of(link)
        module = frames[-1][0][0].partition(".")[0] if frames else ""
        if module not in _LIBRARIES or _has_hook(frames):
            continue
        connector = next((each for place, each in frames if place == _CONNECTING), None)
        if connector is not None:
            return False if _is_of_this_loop(connector) else None
        if module in _LOOPS and any(place[0] in _SENDERS for place, _ in frames):
            return True
    return None


def is_of_user_code(cause: BaseException, inside: Frames) -> bool:
    """Say whether a hook or a middleware has failed, and nothing that it waited for.

    What speaks of a server is no such failure: exceptions of aiohttp, of the operating
    system, timeouts, those that say so by Smithy's retry information, and what a
    middleware raises in place of one of them.

    Args:
        cause: The exception.
        inside: The frames that it came through below the request of aiohttp.
    """
    if _speaks_of_server(cause):
        return False
    places = [place for place, _ in inside]
    if REQUEST in places:
        # A middleware has made a request of its own.
        inside = inside[: places.index(REQUEST)]
    if _has_hook(inside):
        return True
    has_left = any(place == SENDING for place, _ in inside)
    if has_left or _replaces_another(cause, inside):
        return False
    return any(not _is_of_aiohttp(place[0]) for place, _ in inside)


def _replaces_another(cause: BaseException, inside: Frames) -> bool:
    """Say whether it was raised over what speaks of a server, in these very frames.

    Its context may also be the failure of an earlier call.
    """
    own = {id(frame) for _, frame in inside}
    return any(
        isinstance(link, BaseException)
        and link is not cause
        and _speaks_of_server(link)
        and any(id(frame) in own for _, frame in frames_of(link))
        for link in raised_from(cause)
    )


def _speaks_of_server(cause: BaseException) -> bool:
    cause = peel(cause)
    if isinstance(cause, BaseExceptionGroup):
        return any(map(_speaks_of_server, cause.exceptions))
    is_one = isinstance(cause, aiohttp.ClientError | OSError)
    if is_one or not isinstance(cause, Exception):
        return True
    info = RetryInfo.of(cause)
    return info.fault == "server" or info.is_throttling_error or info.is_timeout_error


def _has_hook(frames: Frames) -> bool:
    return any(place[0] == _HOOKS for place, _ in frames)


def _is_of_aiohttp(module: str) -> bool:
    return module.partition(".")[0] in {"aiohttp", "aioretry_smithy"}


def _is_of_this_loop(connector: FrameType) -> bool:
    """Say whether a session is used in the event loop that it was made in."""
    loop = asyncio.get_running_loop()
    return getattr(connector.f_locals.get("self"), "_loop", loop) is loop


def is_cut_body(cause: BaseException) -> bool:
    """Say whether a body ended early; a body with a bad encoding did not."""
    return isinstance(cause, aiohttp.ClientPayloadError) and isinstance(
        cause.__cause__, PayloadEncodingError
    )


IN_POOL: Final = ", and was in the pool's queue"
"""Ends the text about a time limit that passed there."""

TOO_LATE: Final = "no free connection in the pool in time"
"""The message that replaces aiohttp's for a wait in the pool's queue."""

# What aiohttp says when its limit for a connection has passed, which covers the queue.
_NO_CONNECTION: Final = "Connection timeout to host "


def note_wait_in_pool(cause: BaseException) -> None:
    """Mark a timeout as reached in the queue of the connection pool.

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
    """Return a phrase for a timeout in the pool's queue; empty for other timeouts."""
    return "in the pool's queue" if was_in_pool(cause) else ""
