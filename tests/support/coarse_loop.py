"""Makes event loops that show the time in ticks of 15.6 ms, as on Windows.

``AIORETRY_SMITHY_TEST_LOOP=coarse_loop`` lets the tests with sockets run on them.
"""

import asyncio
import math
import time

TICK = 0.015625
"""That of ``time.monotonic()`` on Windows, before Python 3.13."""


class CoarseLoop(asyncio.SelectorEventLoop):
    """Shows the time in whole ticks, and fires what is due within the present one."""

    def __init__(self, tick):
        super().__init__()
        self._clock_resolution = tick

    def time(self):
        """Return the time of the last tick."""
        tick = self._clock_resolution
        return math.floor(time.monotonic() / tick) * tick


def new_event_loop():
    """Make a loop whose clock has the ticks of Windows."""
    return CoarseLoop(TICK)
