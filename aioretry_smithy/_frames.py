"""Find in the frames of a failure the response that it came from.

On failure only: to trace every request would cost all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import aiohttp

if TYPE_CHECKING:
    from collections.abc import Iterator

_HANDSHAKE = ("aiohttp.client", "_ws_connect")
_OF_RESPONSES = {"aiohttp.client_reqrep", "aiohttp.streams"}


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
