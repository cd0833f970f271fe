"""Decide about requests as a rate limit would, and let all of them out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from .._clock import NEAR, loop_time
from .._context.context import context_of
from .errors import RateLimitError
from .rate_gate import Passage, rehearse
from .rate_hooks import RateHooks

if TYPE_CHECKING:
    from .._call.call import Call
    from .._call.hooks import Scope
    from .._dry_run import DryRun
    from .._request.request import HttpRequest
    from .rate_gate import LastTurn, RateGate
    from .rate_limit import RateLimit
    from .rule import RatePermit

    Rehearsed: TypeAlias = tuple[Passage, RateLimit | None, float]
    """As :func:`.rehearse` returns it."""


@dataclass(frozen=True, slots=True, eq=False)
class DryRateHooks(RateHooks):
    """Counts requests, and says which would wait or be refused."""

    dry_run: DryRun = field(kw_only=True)

    async def admit(self, call: Call, scope: Scope, request: HttpRequest) -> RatePermit:
        """Take a turn that has not come; or none, where it would come too late."""
        gate: RateGate = self.gates.of(request)
        ctx = context_of(call, scope)
        latest, deadline = self.times(call, loop_time())
        try:
            prices = gate.prices(ctx, request)
            last = gate.last_turn(ctx, request)
            rehearsed = rehearse(prices)
            if last is not None:
                rehearsed = await _ask_last(rehearsed, last, deadline)
        except Exception as error:
            self.dry_run.refused(request, error)
            return gate.untaken()
        passage, limit, turn = rehearsed
        seconds = turn - loop_time()
        if limit is None:
            return passage
        if turn > latest + NEAR or turn >= deadline:
            passage.give_back()
            self.dry_run.refused(request, RateLimitError(limit, seconds))
            return gate.untaken()
        self.dry_run.waited(request, seconds, limit)
        return passage


async def _ask_last(rehearsed: Rehearsed, last: LastTurn, deadline: float) -> Rehearsed:
    """Ask a storage too: for a turn that is now, since nobody waits for one."""
    passage, limit, turn = rehearsed
    shared, ask = last
    is_asked = False
    try:
        is_given, seconds = await ask(loop_time(), deadline)
        is_asked = True
    finally:
        if not is_asked:
            passage.give_back()
    then = loop_time() + seconds
    if is_given or (limit is not None and turn >= then):
        return rehearsed
    return passage, shared, then
