"""Tell the time, inside an event loop and outside of one."""

from __future__ import annotations

import asyncio
import time


def loop_time() -> float:
    """Return the running event loop's time; without one, :func:`time.monotonic`.

    Seconds that never go back, whose zero means nothing.

    >>> loop_time() <= loop_time()
    True
    """
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return time.monotonic()
    return loop.time()
