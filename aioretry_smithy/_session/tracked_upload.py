"""End the tracker of an upload that aiohttp has never begun.

aiohttp ends each tracker that it got, whatever comes of the request. A call that is
refused, or answered by a decorator, never gets that far; who waits for the end of its
upload would wait for ever.
"""

from __future__ import annotations


class TrackedUpload:
    """Ends with its call, as the bodies do that wait for another attempt.

    Args:
        tracker: What the caller gave; None, or an object of a mock, has no end.
    """

    __slots__ = ("source",)

    def __init__(self, tracker: object) -> None:
        self.source = tracker

    async def end(self) -> None:
        """End the tracker if nothing was sent with it; it is used up then."""
        end_unsent(self.source)


def end_unsent(tracker: object) -> None:
    """End a tracker as aiohttp does, unless it is that of a request of aiohttp's."""
    if not getattr(tracker, "_bound", True):
        for step in ("_bind", "_finalize"):
            getattr(tracker, step)()
