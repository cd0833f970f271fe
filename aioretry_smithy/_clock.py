"""Tell the time, inside an event loop and outside of one, and draw random numbers."""

from __future__ import annotations

import random
import time
from asyncio import AbstractEventLoop, get_running_loop
from collections.abc import Callable
from typing import Final

NEAR: Final = 1e-6
"""Seconds that times may differ by because they are sums of floats."""


class VirtualClock:
    """Marks an event loop whose seconds take no real time, and are those of the day."""

    began_at: float
    """The time of day when its clock was at 0, in seconds since 1970."""


def wall_clock() -> float:
    """Return the time of day, in seconds since 1970, which a virtual clock moves.

    >>> abs(wall_clock() - time.time()) < 1.0
    True
    """
    try:
        loop = get_running_loop()
    except RuntimeError:
        return time.time()
    return wall_clock_at(loop, loop.time(), time.time())


def wall_clock_at(loop: AbstractEventLoop, moment: float, machine: float) -> float:
    """Return the time of day at a moment of a loop; *machine* was the machine's then.

    So a call notes two clocks, and nobody asks which of them counts until it is shown.
    """
    return loop.began_at + moment if isinstance(loop, VirtualClock) else machine


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


dice: Final = random.random
"""Draws a number in [0, 1), for what is drawn often and is never pickled."""


def chance() -> float:
    """Return a number in [0, 1), as :func:`random.random` does.

    That one is a method: whoever pickles it pickles the state of its generator, and all
    copies then draw the same numbers. A function is pickled by its name.

    >>> 0 <= chance() < 1
    True
    """
    return random.random()


def to_be_pickled(given: Callable[[], float]) -> Callable[[], float]:
    """Return :func:`chance` in place of :func:`random.random`, else what is given."""
    return chance if given is random.random else given
