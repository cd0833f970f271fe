"""End the waits of a call when its session is closed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from aiohttp import ClientSession

    from .call import Call


T = TypeVar("T")

CLOSED: Final = object()
"""The placeholder for the result of a wait that the close of the session has ended."""

_WAITS: Final = "_aioretry_smithy_waits"
"""The attribute of a session with the waits of its calls, while there are any."""


def refuse_as_closed() -> NoReturn:
    """Raise the error of aiohttp for a session that is closed, or gone."""
    raise RuntimeError("Session is closed")


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
    end = call.loop.time() + seconds
    # Tests of users put a function of their own in the place of this one.
    was_closed = await _until_closed(session, asyncio.sleep(seconds)) is CLOSED
    return max(0.0, end - call.loop.time()) if was_closed else 0.0


async def until_closed(call: Call, wait: Callable[[], Awaitable[Any]]) -> Any:
    """Begin a wait of a call; return :data:`CLOSED` where its session is closed."""
    session = call.session
    if session is None:
        return await wait()
    return CLOSED if session.closed else await _until_closed(session, wait())


async def unless_closed(call: Call, wait: Callable[[], Awaitable[T]]) -> T:
    """Begin a wait of a call, which the close of its session ends.

    Raises:
        RuntimeError: The session is closed.
    """
    result: T = await until_closed(call, wait)
    if result is CLOSED:
        refuse_as_closed()
    return result


async def _until_closed(session: ClientSession, waiting: Awaitable[object]) -> object:
    waits: _Waits = vars(session).get(_WAITS) or _Waits(session)
    wait = asyncio.timeout(None)
    waits.running.add(wait)
    try:
        async with wait:
            return await waiting
    except TimeoutError:
        if not wait.expired():
            raise
        return CLOSED
    finally:
        waits.end(session, wait)
        # What is raised has this frame, and the wait has the task.
        del wait


class _Waits:
    """The waits of the calls of a session, which end when it is closed.

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
                self._look(session)

        self._close = close
        attributes[_WAITS], attributes["close"] = self, close
        # A close that was called before this begins only now, as that of a new task.
        asyncio.get_running_loop().call_soon(self._look, session)

    def _look(self, session: ClientSession) -> None:
        """End all waits if the session is closed."""
        if not session.closed:
            return
        now = asyncio.get_running_loop().time()
        for wait in self.running:
            if wait.when() is None:
                wait.reschedule(now)

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
