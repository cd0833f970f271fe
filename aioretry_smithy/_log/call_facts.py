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
        "around",
        "deadline",
        "default_headers",
        "gave_up_inside",
        "has_queued",
        "is_over",
        "loop",
        "mask",
        "refused_hedges",
        "resends",
        "root",
        "started",
        "waiters",
        "wall_clock",
    )

    default_headers: Mapping[str, str] | None
    """A copy of the session's headers, as they were sent first; None of a function."""

    root: Callable[[], Any]
    """Finds the log of the call, which must not be kept alive from here."""

    around: CallFacts
    """The call in whose attempt this call was made; absent where there is none."""

    gave_up_inside: bool
    """Whether it failed with an error that a call made inside has given up on."""

    has_queued: bool
    """Whether it has stood in the queue of a limit."""

    is_over: bool
    """Whether the caller has the response or the exception."""

    refused_hedges: int
    """How many times a limiter gave no leave for a hedge."""

    resends: int
    """How many requests were sent again because a connection of the pool was broken."""

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
        self.is_over = self.gave_up_inside = self.has_queued = False
        self.waiters = ()
        self.refused_hedges = self.resends = 0

    @property
    def outermost(self) -> CallFacts:
        """The call around all others, which may be this one."""
        call = self
        while (around := _around(call)) is not None:
            call = around
        return call

    def surround(self, inside: CallFacts) -> None:
        """Begin to hide what *inside* hides, a call that an attempt of this makes.

        The failure of a call inside is often that of the calls around it. It hides what
        this one hides too, for it is shown in the views of this one.
        """
        inside.around = self
        if not inside.mask.covers(self.mask):
            inside.mask |= self.mask
        call: CallFacts | None = self
        while call is not None and not call.mask.covers(inside.mask):
            call.mask |= inside.mask
            call = _around(call)

    def wake(self) -> None:
        """Call the waiters, because something has ended."""
        waiters, self.waiters = self.waiters, ()
        for waiter in waiters:
            waiter()


def _around(call: CallFacts) -> CallFacts | None:
    return getattr(call, "around", None)
