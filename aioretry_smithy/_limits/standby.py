"""Decide about a request as a limit would, while it is out already."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .._clock import loop_time
from .errors import ConcurrencyLimitError

if TYPE_CHECKING:
    import asyncio

    from .._context.context import ClientRequestContext
    from .._dry_run import DryRun
    from .._request.request import HttpRequest
    from .concurrency_limit import ConcurrencyLimit
    from .places import Permit


@dataclass(frozen=True, slots=True, eq=False)
class LateRequest:
    """A request that goes out, though there was no place for it when it came.

    Args:
        dry_run: Says what would have become of it.
        limit: What left no place.
        ctx: The call or the attempt.
        request: The request, without its body.
        began: When it came.
    """

    dry_run: DryRun
    limit: ConcurrencyLimit
    ctx: ClientRequestContext
    request: HttpRequest
    began: float

    def refuse(self) -> None:
        """Say that it would have been refused by now."""
        limit = self.limit
        limit._refuse(self.ctx)
        waited = loop_time() - self.began
        error = ConcurrencyLimitError(limit, waited, limit.pending)
        self.dry_run.refused(self.request, error)

    def admit(self) -> None:
        """Say that it would have waited until now."""
        waited = loop_time() - self.began
        self.dry_run.waited(self.request, waited, self.limit.name)


class Standby:
    """The permit of a request that is out, and stands in line for a place.

    It gets one, or none in time, or ends before; then it leaves the line. Without a
    place it does not count, and teaches the limit nothing.

    Args:
        late: The request.
        until: When it would have been refused.
    """

    __slots__ = ("_late", "_number", "_place", "_queue", "_until")

    def __init__(self, late: LateRequest, until: float) -> None:
        # None once it was said what would have become of the request.
        self._late: LateRequest | None = late
        self._until = until
        # That of another event loop would be another one.
        self._queue = late.limit._places.queue
        self._number, self._place = self._queue.join(until)
        self._place.add_done_callback(self._hear)

    def learn(self, *, dropped: bool) -> None:
        """Report to the limit how the request was answered, if it has a place."""
        permit = self._permit()
        if permit is not None:
            permit.learn(dropped=dropped)

    def release(self) -> None:
        """Give the place back, or leave the line; once."""
        permit, late = self._permit(), self._late
        if permit is not None:
            permit.release()
        elif late is not None:
            self._late = None
            # It has this object, which has it.
            self._place.remove_done_callback(self._hear)
            self._queue.leave(self._number)
            if loop_time() < self._until:
                late.admit()
            else:
                late.refuse()

    def _permit(self) -> Permit | None:
        """Return the permit, if it has come."""
        place = self._place
        # It may have come in this turn of the loop.
        return self._hear(place) if place.done() else None

    def _hear(self, place: asyncio.Future[Permit | None]) -> Permit | None:
        """Say what would have become of the request, once that is known."""
        permit, late = place.result(), self._late
        if late is not None:
            self._late = None
            if permit is None:
                late.refuse()
            else:
                # Round trips count from when it was sent.
                permit.begun = late.began
                late.admit()
        return permit
