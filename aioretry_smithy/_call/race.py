"""Mark a request that was sent beside another one."""

from __future__ import annotations

import math


class Race:
    """The part of a request in a race of several that are sent for one answer."""

    __slots__ = ("after", "ended", "is_superseded")

    after: float | None
    """Seconds from the start of the first one; None of that one itself."""

    ended: float
    """When the last of them was over, for the record of the call; else long ago."""

    is_superseded: bool
    """Whether it was given up because another one had a good answer."""

    def __init__(self, after: float | None = None, ended: float = -math.inf) -> None:
        self.after = after
        self.ended = ended
        self.is_superseded = False
