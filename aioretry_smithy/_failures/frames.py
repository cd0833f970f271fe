"""Find in the frames of a failure what was sent, and the response it came from.

On failure only: to trace every request would cost all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import aiohttp

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import FrameType

# From our own error to the cancellation by which aiohttp's timer ends a wait.
_LINKS = 4
_REPEATED = {"DELETE", "GET", "HEAD", "OPTIONS", "PUT", "TRACE"}
_HANDSHAKE = ("aiohttp.client", "_ws_connect")
_OF_RESPONSES = {"aiohttp.client_reqrep", "aiohttp.streams"}


def came_from_aiohttp(cause: BaseException) -> bool:
    """Say whether a failure came out of aiohttp itself, and not out of a mock."""
    return any(True for _ in _frames(cause, "aiohttp.client", "_request"))


def went_out(cause: BaseException) -> bool:
    """Say whether a request had left for a server when it failed."""
    for frame in _frames(cause, "aiohttp.client", "_request"):
        variables = frame.f_locals
        # The answered hops; and a first send that aiohttp repeated behind our back.
        if variables.get("history") or _was_repeated(variables):
            return True
    return any(
        # A middleware that sends again uses the same request.
        getattr(frame.f_locals.get("req"), "response", None) is not None
        for frame in _frames(cause, "aiohttp.client", "_connect_and_send_request")
    )


def _was_repeated(variables: Mapping[str, Any]) -> bool:
    session = variables.get("self")
    may_repeat = getattr(session, "_retry_connection", False) and (
        variables.get("method") in _REPEATED
    )
    return bool(may_repeat) and not variables.get("retry_persistent_connection", True)


def sources_of(cause: BaseException) -> Iterator[tuple[Any, bool]]:
    """Yield what raised an exception: a response, or the timer of a body.

    Beside each stands whether the body had failed with this very exception.
    """
    traceback = cause.__traceback__
    while traceback is not None:
        frame = traceback.tb_frame
        where = frame.f_globals.get("__name__"), frame.f_code.co_name
        if where == _HANDSHAKE:
            yield frame.f_locals.get("resp"), False
        elif where[0] in _OF_RESPONSES:
            source = frame.f_locals.get("self")
            if isinstance(source, aiohttp.StreamReader):
                yield source._timer, source.exception() is cause
            else:
                yield source, False
        traceback = traceback.tb_next


def _frames(cause: BaseException, module: str, function: str) -> Iterator[FrameType]:
    link: BaseException | None = cause
    for _ in range(_LINKS):
        if link is None:
            return
        traceback = link.__traceback__
        while traceback is not None:
            frame = traceback.tb_frame
            if frame.f_code.co_name == function and (
                frame.f_globals.get("__name__") == module
            ):
                yield frame
            traceback = traceback.tb_next
        # Not the context: that may be the failure of an earlier call.
        link = link.__cause__
