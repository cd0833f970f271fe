"""Take a place in flight for each request, and hold it while the body is read."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from aiohttp import ClientResponse

from .._call.hooks import NOTHING, PASS, WAIT, Hooks
from .._clock import loop_time
from .._context.context import context_of
from .._failures.safety import mark_queued
from .concurrency_limit_error import ConcurrencyLimitError
from .overload import is_overloaded, was_dropped
from .waiting import note_queue

if TYPE_CHECKING:
    import aiohttp

    from .._call.call import Call
    from .._call.hooks import Scope
    from .concurrency_limit import ConcurrencyLimit
    from .places import Place


class PlaceHooks(Hooks):
    """Lets requests wait until there is a place for them.

    Args:
        limits: Finds the limit of a request.
        max_pending: Requests that may wait at once; None for any number.
        timeout: Longest wait in seconds; None for no such limit.
    """

    __slots__ = ("_limits", "_max_pending", "_timeout")

    def __init__(
        self, limits: Any, max_pending: int | None, timeout: float | None
    ) -> None:
        self._limits = limits
        self._max_pending = max_pending
        self._timeout = timeout

    def enter(self, call: Call, scope: Scope, request: Any) -> Any:
        """Take a place, if there is one."""
        limit = self._limits.of(request)
        if limit is None:
            return PASS
        return limit._try_enter(call.loop.time()) or WAIT

    async def admit(self, call: Call, scope: Scope, request: Any) -> Place:
        """Wait for a place.

        Raises:
            ConcurrencyLimitError: None came in time.
        """
        limit: ConcurrencyLimit = self._limits.of(request)
        started = loop_time()
        if self._max_pending is None or limit.pending < self._max_pending:
            longest = math.inf if self._timeout is None else self._timeout
            until = started + min(longest, call.remaining(scope.record))
            place = await limit._wait(until)
            note_queue(call, started)
            if place is not None:
                return place
        limit._refuse(context_of(call, scope))
        # Not by way of a variable: the error has this frame.
        raise _refusal(limit, loop_time() - started)

    def leave(
        self,
        call: Call,
        scope: Scope,
        permit: Place,
        result: Any,
        cause: Exception | None,
    ) -> None:
        """Let the limit learn, and leave the place when the body has ended."""
        if result is NOTHING:
            self._drop(permit, cause)
            return
        dropped = is_overloaded(result.status)
        if dropped is not None:
            permit.learn(dropped=dropped)
        _leave_after_body(permit, result)

    def cancel(
        self, call: Call, scope: Scope, permit: Place, cause: BaseException
    ) -> None:
        """Leave the place."""
        self._drop(permit, cause)

    def _drop(self, place: Place, cause: BaseException | None) -> None:
        if cause is not None and was_dropped(cause):
            place.learn(dropped=True)
        place.leave()


def _leave_after_body(place: Place, response: aiohttp.ClientResponse) -> None:
    """Let a request leave its place when the body has ended."""
    # The body of a mock never ends.
    if response.connection is None or not issubclass(type(response), ClientResponse):
        place.leave()
    else:
        # aiohttp calls it then, and where a response is closed or collected before.
        response.connection.add_callback(place.leave)


def _refusal(limit: ConcurrencyLimit, waited: float) -> ConcurrencyLimitError:
    error = ConcurrencyLimitError(limit, waited, limit.pending)
    # So that a call whose deadline ends the wait counts for nobody either.
    mark_queued(error)
    return error
