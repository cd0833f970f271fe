"""Wait only for what no attempt around holds."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, TypeVar

from .._call.outcome import NOTHING
from .._context.holdings import fetch_around, is_held

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Coroutine
    from typing import Literal

    from .._call.outcome import Nothing
    from .._context.context import ClientRequestContext

_T = TypeVar("_T")

_given_up: Final[set[asyncio.Task[Any]]] = set()
"""Abandoned waits that have not left their queues yet."""


async def unless_held(
    waiting: Coroutine[Any, Any, _T],
    ctx: ClientRequestContext,
    things: Collection[object],
    give_back: Callable[[_T], object],
) -> _T | Literal[Nothing.NOTHING]:
    """Await a wait for things; end it where the attempt around holds one by now.

    That can be where a token is fetched: one who holds it may begin to wait for the
    token. :data:`.NOTHING` is returned then, and the wait has left all its lines.

    Args:
        waiting: The wait.
        ctx: What waits.
        things: What it waits for.
        give_back: Takes back what came as the caller was cancelled.
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
    except BaseException:
        if task.done() and not task.cancelled() and task.exception() is None:
            give_back(task.result())
        raise
    else:
        return task.result()
    finally:
        if not task.done():
            _given_up.add(task)
            task.add_done_callback(_given_up.discard)
            task.cancel()
        # What is raised has this frame, which must not have it.
        del task
