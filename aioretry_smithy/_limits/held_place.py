"""Note what an attempt holds of a limit, and wait only for what it does not."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, TypeVar

from .._call.kinds import NOTHING
from .._context.holdings import fetch_around, is_held

if TYPE_CHECKING:
    from collections.abc import Collection, Coroutine
    from typing import Literal

    from .._call.kinds import Nothing
    from .._context.context import ClientRequestContext
    from .._context.holdings import Holdings
    from .samples import Place

_T = TypeVar("_T")

_given_up: Final[set[asyncio.Task[Any]]] = set()
"""Waits that were given up, until they have left their lines."""


class HeldPlace:
    """A place that the calls inside its attempt need not ask for again.

    Args:
        place: The place.
        holdings: What the attempt holds.
        limit: Gave the place.
    """

    __slots__ = ("_holdings", "_limit", "_place")

    def __init__(self, place: Place, holdings: Holdings, limit: object) -> None:
        self._place = place
        self._holdings: Holdings | None = holdings
        self._limit = limit
        holdings.add(limit)

    def learn(self, *, dropped: bool) -> None:
        """Report to the limit how the request was answered, before it is released."""
        self._place.learn(dropped=dropped)

    def release(self) -> None:
        """Give it back, for the next request that waits; once."""
        holdings, self._holdings = self._holdings, None
        if holdings is not None:
            holdings.remove(self._limit)
            self._place.release()


async def unless_held(
    waiting: Coroutine[Any, Any, _T],
    ctx: ClientRequestContext,
    things: Collection[object],
) -> _T | Literal[Nothing.NOTHING]:
    """Await a wait for things; end it where the attempt around holds one by now.

    That can be where a token is fetched: one who holds it may begin to wait for the
    token. :data:`.NOTHING` is returned then, and the wait has left all its lines.
    """
    fetch = fetch_around()
    if fetch is None:
        return await waiting
    task = asyncio.get_running_loop().create_task(waiting)
    try:
        while not task.done():
            if any(is_held(ctx, each) for each in things):
                return NOTHING
            await fetch.joined_before(task)
        return task.result()
    finally:
        if not task.done():
            _given_up.add(task)
            task.add_done_callback(_given_up.discard)
            task.cancel()
        # What is raised has this frame, which must not have it.
        del task
