"""Wait for a server to be ready again, before an attempt begins."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from .._call.recorder import begin_after_wait
from .._errors import bad_argument, is_finite
from .._policies.queues import note_queue, unless_held
from .waiting_line import give_back, wait_at

if TYPE_CHECKING:
    from typing import Literal

    from .._call.outcome import Nothing
    from .._context.context import ClientRequestContext
    from .breaker import CircuitBreaker
    from .waiting_line import Answer


async def until_ready(
    ctx: ClientRequestContext, breaker: CircuitBreaker, patience: float
) -> Answer | Literal[Nothing.NOTHING] | None:
    """Wait at an open circuit for some seconds, but not beyond the deadline.

    The attempt and its time limit begin after that.

    Returns:
        The answer of the circuit breaker; None where it is to be asked as ever, for
        there is nothing to wait for any more. :data:`.NOTHING` where an attempt around
        is the trial by now, so that it need not be asked.

    Raises:
        Exception: The circuit breaker has raised it, or a listener of its.
    """
    call = ctx.call
    loop = call.loop
    started = loop.time()
    # That of the attempt has not begun.
    until = started + min(patience, call.time_of(call))
    cut = ctx.cut
    if cut is not None:
        cut.follow(loop, call.deadline)
    answer = None
    try:
        waiting = wait_at(breaker, loop, until)
        answer = await unless_held(
            waiting, ctx, (breaker,), partial(give_back, breaker)
        )
    finally:
        if answer is None:
            note_queue(ctx, started)
        waited = loop.time() - started
        if waited > 0:
            begin_after_wait(call, ctx.record, waited, "circuit_breaker")
        if cut is not None:
            cut.follow(loop, ctx.deadline)
    return answer


def check_patience(seconds: object) -> None:
    """Refuse what is neither None nor the seconds of a longest wait."""
    if seconds is not None and not (is_finite(seconds) and seconds > 0):
        raise bad_argument("wait_for_ready", seconds, "finite and > 0, or None")
