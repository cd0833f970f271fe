"""Read from the frames of a failure what aiohttp does not tell.

On failure only: to trace every request would cost all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

# From our own error to the cancellation by which aiohttp's timer ends a wait.
_LINKS = 4


def was_redirected(cause: BaseException) -> bool:
    """Say whether an earlier hop of a failed request was answered by a redirect.

    aiohttp keeps the answered hops in a local variable; one that has another name some
    day is taken for a redirect, which is the safe side.
    """
    return any(
        bool(frame.f_locals.get("history", True))
        for frame in _frames(cause, "aiohttp.client", "_request")
    )


def was_queued(cause: BaseException) -> bool:
    """Say whether a request was cut while it waited for a place in the pool.

    A method that has another name some day is not found, and the wait is taken for one
    for the server.
    """
    waits = _frames(cause, "aiohttp.connector", "_wait_for_available_connection")
    return any(True for _ in waits)


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
