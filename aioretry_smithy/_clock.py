"""Tell the time, inside an event loop and outside of one."""

from __future__ import annotations

import time
from asyncio import get_running_loop
from typing import Final

NEAR: Final = 1e-6
"""Seconds that times may differ by because they are sums of floats."""


class VirtualClock:
    """Marks an event loop whose seconds take no real time."""


def loop_time() -> float:
    """Return the running event loop's time; without one, :func:`time.monotonic`.

    The seconds never go back; their zero is arbitrary.

    >>> loop_time() <= loop_time()
    True
    """
    try:
        loop = get_running_loop()
    except RuntimeError:
        return time.monotonic()
    return loop.time()
