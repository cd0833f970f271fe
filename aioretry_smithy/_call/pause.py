"""Wait between attempts, no longer than the session of the call is open."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

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
    waits: _Waits = vars(session).get(_WAITS) or _Waits(session)
    loop = call.loop
    end = loop.time() + seconds
    wait = asyncio.timeout(None)
    waits.running.add(wait)
    try:
        async with wait:
            # Tests of users put a function of their own in the place of this one.
            await asyncio.sleep(seconds)
    except TimeoutError:
        if not wait.expired():
            raise
        return max(0.0, end - loop.time())
    finally:
        waits.end(session, wait)
    return 0.0


class _Waits:
    """The waits of the calls of a session, which hear when it is closed.

    Until the last one is over a function stands in front of the session's ``close()``.
    A call that waits keeps the session alive, so its method may be fetched from what
    nobody else keeps.

    Args:
        session: The session.
    """

    __slots__ = ("_before", "_close", "running")

    running: set[asyncio.Timeout]
    """The waits that a close of the session ends."""

    def __init__(self, session: ClientSession) -> None:
        attributes = vars(session)
        self.running = set()
        # Another library may have put a function in the same place.
        self._before: Callable[[], Awaitable[None]] | None = attributes.get("close")

        async def close() -> None:
            try:
                await (self._before or type(session).close.__get__(session))()
            finally:
                if session.closed:
                    now = asyncio.get_running_loop().time()
                    for wait in self.running:
                        if wait.when() is None:
                            wait.reschedule(now)

        self._close = close
        attributes[_WAITS], attributes["close"] = self, close

    def end(self, session: ClientSession, wait: asyncio.Timeout) -> None:
        """Forget a wait that is over, and with the last one the session."""
        self.running.discard(wait)
        if self.running:
            return
        attributes = vars(session)
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
