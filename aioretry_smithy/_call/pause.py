"""Wait between attempts, no longer than the session of the call is open."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from aiohttp import ClientSession

    from .call import Call

_WAITS: Final = "_aioretry_smithy_waits"
"""The attribute of a session with the waits of its calls, while there are any."""


async def pause(call: Call, seconds: float) -> float:
    """Wait for some seconds; return how many are left where the session was closed.

    The next attempt is then refused as that of a closed session.
    """
    session = call.session
    if session is None or seconds <= 0:
        await asyncio.sleep(seconds)
        return 0.0
    if session.closed:
        return seconds
    loop = call.loop
    end = loop.time() + seconds
    woken: asyncio.Future[None] = loop.create_future()
    timer = loop.call_at(end, _wake, woken)
    waits: _Waits = vars(session).get(_WAITS) or _Waits(session)
    waits.woken.add(woken)
    try:
        await woken
    finally:
        timer.cancel()
        waits.end(session, woken)
    return max(0.0, end - loop.time()) if waits.has_closed else 0.0


class _Waits:
    """The waits of the calls of a session, which hear when it is closed.

    Until the last one is over a function stands in front of the session's ``close()``.
    A call that waits keeps the session alive, so its method may be fetched from what
    nobody else keeps.

    Args:
        session: The session.
    """

    __slots__ = ("_before", "_close", "has_closed", "woken")

    has_closed: bool
    """Whether they were ended by a close."""

    woken: set[asyncio.Future[None]]
    """What ends each of them."""

    def __init__(self, session: ClientSession) -> None:
        attributes = vars(session)
        self.woken = set()
        self.has_closed = False
        # Another library may have put a function in the same place.
        self._before: Callable[[], Awaitable[None]] | None = attributes.get("close")

        async def close() -> None:
            try:
                await (self._before or type(session).close.__get__(session))()
            finally:
                if session.closed:
                    self.has_closed = True
                    for each in self.woken:
                        _wake(each)

        self._close = close
        attributes[_WAITS], attributes["close"] = self, close

    def end(self, session: ClientSession, woken: asyncio.Future[None]) -> None:
        """Forget a wait that is over, and with the last one the session."""
        self.woken.discard(woken)
        if self.woken:
            return
        attributes: dict[str, Any] = vars(session)
        del attributes[_WAITS]
        # It has this object, which must not have it.
        close = self._close
        del self._close
        if attributes.get("close") is not close:
            # Somebody has put another one there meanwhile.
            return
        del attributes["close"]
        if self._before is not None:
            attributes["close"] = self._before


def _wake(woken: asyncio.Future[None]) -> None:
    if not woken.done():
        woken.set_result(None)
