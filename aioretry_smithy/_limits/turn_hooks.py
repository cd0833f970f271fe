"""Let each request wait for its turn at a rate, and learn from the answer."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from .._call.hooks import NOTHING, PASS, WAIT, Hooks
from .._call.recorder import begin_after_wait
from .._clock import loop_time
from .._context.context import context_of
from .._failures.safety import mark_queued
from .rate_limit_error import RateLimitError
from .waiting import note_queue

if TYPE_CHECKING:
    from .._call.call import Call
    from .._call.hooks import Scope
    from .rate_limit import Permit, RateLimit


class TurnHooks(Hooks):
    """Lets requests wait for their turn.

    Args:
        limits: Finds the rate of a request.
        timeout: Longest wait in seconds; None for no such limit.
    """

    __slots__ = ("_limits", "_timeout")

    def __init__(self, limits: Any, timeout: float | None) -> None:
        self._limits = limits
        self._timeout = timeout

    def enter(self, call: Call, scope: Scope, request: Any) -> Any:
        """Take a turn, if it has come."""
        limit = self._limits.of(request)
        return PASS if limit is None else limit._try_take(call.loop.time()) or WAIT

    async def admit(self, call: Call, scope: Scope, request: Any) -> Permit:
        """Wait for a turn.

        Raises:
            RateLimitError: It does not come in time.
        """
        limit: RateLimit = self._limits.of(request)
        started = loop_time()
        # That of the attempt has not begun.
        deadline = started + call.remaining(call)
        latest = math.inf if self._timeout is None else started + self._timeout
        ctx = context_of(call, scope)
        turn = await limit._turn(ctx, request, latest, deadline)
        if not turn.is_given:
            note_queue(call, started)
            # Not by way of a variable: the error has this frame.
            raise _refusal(limit, turn.seconds)
        if turn.seconds:
            begin_after_wait(call, scope.record, turn.seconds)
        return turn.permit or limit

    def leave(
        self,
        call: Call,
        scope: Scope,
        permit: Permit,
        result: Any,
        cause: Exception | None,
    ) -> None:
        """Let the limit learn from the answer."""
        if result is NOTHING:
            permit._lose()
        else:
            permit._learn(result)

    def cancel(
        self, call: Call, scope: Scope, permit: Permit, cause: BaseException
    ) -> None:
        """Note that no answer comes; the turn stays taken."""
        permit._lose()


def _refusal(limit: RateLimit, retry_in: float) -> RateLimitError:
    error = RateLimitError(limit, retry_in)
    mark_queued(error)
    return error
