"""Hold the facts that all logs of one call share."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Mapping, Sequence

    from .._masking.mask import Mask


class CallFacts:
    """Outlives the log of the call, for logs of attempts that are kept alone."""

    __slots__ = (
        "deadline",
        "default_headers",
        "gave_up_inside",
        "is_over",
        "loop",
        "mask",
        "root",
        "started",
        "waiters",
        "wall_clock",
    )

    root: Callable[[], Any]
    """Finds the log of the call, which must not be kept alive from here."""

    gave_up_inside: bool
    """Whether it failed with what a call made inside of it has given up on."""

    is_over: bool
    """Whether the caller has the response or the exception."""

    waiters: Sequence[Callable[[], object]]
    """Functions to call, once, when something of the call has ended."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        timeout: float | None,
        default_headers: Mapping[str, str] | None,
        mask: Mask,
    ) -> None:
        self.loop = loop
        self.default_headers = default_headers
        self.mask = mask
        self.wall_clock = time.time()
        self.started = started = loop.time()
        self.deadline = None if timeout is None else started + timeout
        self.is_over = self.gave_up_inside = False
        self.waiters = ()

    def wake(self) -> None:
        """Call the waiters, because something has ended."""
        waiters, self.waiters = self.waiters, ()
        for waiter in waiters:
            waiter()
