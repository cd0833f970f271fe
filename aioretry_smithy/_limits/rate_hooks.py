"""Let requests wait for their turn at a rate, and let it learn from how they end."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .._call.hooks import PASS, WAIT, Hooks, Sign
from .._call.recorder import begin_after_wait
from .._clock import loop_time
from .._context.context import context_of
from .._failures.raised_answers import answer_of_server
from .actual import ask_for_actual
from .charges import keep_charge
from .errors import RateLimitError
from .queued import note_queue, unsent
from .rate_gate import Passage, pass_all

if TYPE_CHECKING:
    import aiohttp

    from .._call.call import Call
    from .._call.hooks import Scope
    from .._call.kinds import Finder
    from .._request.request import HttpRequest
    from .rate_gate import LastTurn, RateGate
    from .rule import RatePermit


@dataclass(frozen=True, slots=True, eq=False)
class RateHooks(Hooks):
    """Lets requests wait for their turn.

    Args:
        gates: Finds the gate of a request.
        timeout: Longest wait in seconds; None for no such limit.
    """

    gates: Finder
    timeout: float | None

    def enter(
        self, call: Call, scope: Scope, request: HttpRequest
    ) -> RatePermit | Sign:
        """Take a turn, if it has come and nothing has to be asked."""
        gate: RateGate | None = self.gates.of(request)
        return PASS if gate is None else gate.try_pass(call.loop.time()) or WAIT

    async def admit(self, call: Call, scope: Scope, request: HttpRequest) -> RatePermit:
        """Wait for a turn at each limit.

        Raises:
            RateLimitError: It does not come in time.
            Exception: A function of the user's has raised it.
        """
        gate: RateGate = self.gates.of(request)
        ctx = context_of(call, scope)
        started = loop_time()
        latest, deadline = self.times(call, started)
        try:
            prices = gate.prices(ctx, request)
            last = gate.last_turn(ctx, request)
            passage = await pass_all(prices, latest, deadline)
            if last is not None:
                passage = await _ask_last(passage, last, latest, deadline)
        except RateLimitError as error:
            note_queue(ctx, started)
            unsent(error)
            raise
        if passage.waited:
            begin_after_wait(call, scope.record, passage.waited)
        return passage

    def leave(
        self,
        call: Call,
        scope: Scope,
        permit: RatePermit,
        result: aiohttp.ClientResponse | Sign,
        cause: Exception | None,
    ) -> None:
        """Let the limits learn from the answer, and ask what it has cost."""
        if isinstance(result, Sign):
            answer = answer_of_server(cause)
            if answer is None:
                permit.lose()
            else:
                permit.learn(answer)
            return
        permit.learn(result)
        if isinstance(permit, Passage):
            for limit, charge in permit.charges:
                keep_charge(result, limit, charge)
                ask_for_actual(call, scope.record, limit, charge, result)

    def cancel(
        self, call: Call, scope: Scope, permit: RatePermit, cause: BaseException
    ) -> None:
        """Note that no answer comes; the turn stays taken."""
        permit.lose()

    def times(self, call: Call, now: float) -> tuple[float, float]:
        """Return the latest time for a turn, and the deadline it has to be before."""
        latest = math.inf if self.timeout is None else now + self.timeout
        # That of the attempt has not begun.
        return latest, now + call.remaining(call)


async def _ask_last(
    passage: Passage, last: LastTurn, latest: float, deadline: float
) -> Passage:
    """Wait for a turn of a storage too; without one give back all others.

    Raises:
        RateLimitError: There is none in time.
    """
    shared, turn = last
    is_given = False
    try:
        is_given, seconds = await turn(latest, deadline)
    finally:
        if not is_given:
            passage.give_back()
    if not is_given:
        raise RateLimitError(shared, seconds)
    return replace(passage, waited=passage.waited + seconds)
