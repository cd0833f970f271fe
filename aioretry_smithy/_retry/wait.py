"""The decisions after an attempt: a wait of some seconds, or a stop."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, Literal, TypeAlias

from .. import _checks as check
from .._call.outcome import RetryStopReason
from .._call.servers import UNAVAILABLE, has_untried, is_unsent, rests_of, status_judged
from .._call.time_limits import up_to_tick
from .._clock import chance
from .._errors import RefusedRequestError
from .._failures.failure import BAD_CERTIFICATE, peel
from .._failures.hints import attribute_of

if TYPE_CHECKING:
    from .._call.call import Context
    from .config import RetryConfig


@dataclass(slots=True)
class Wait:
    """The decision to try again after some seconds."""

    stops: ClassVar[Literal[False]] = False

    delay: float
    source: Literal["backoff", "retry_after", "rate_limit", "next_endpoint"]

    jitter: float | None = None
    """The most seconds added to a hint, if the hint is not the delay."""


@dataclass(slots=True)
class Stop:
    """The decision that there is no other attempt; None is the reason of a success."""

    stops: ClassVar[Literal[True]] = True

    reason: RetryStopReason | None


Decision: TypeAlias = Wait | Stop

AT_ONCE: Final = Wait(0.0, "backoff")
"""The decision to make an attempt now: the first one, or one that was waited for."""

SUCCEEDED: Final = Stop(None)
NOT_WANTED: Final = Stop(RetryStopReason.NO_RETRY)

TOO_LATE: Final = Stop(RetryStopReason.DEADLINE)
_TOO_LONG: Final = Stop(RetryStopReason.RETRY_AFTER_TOO_LONG)


def plan_wait(
    wait: Wait,
    retry_after: float,
    remaining: float,
    config: RetryConfig,
    tick: float = 0.0,
) -> Decision:
    """Choose the longer of two waits, or stop if it is too long.

    A part of the backoff is added to what a server asks for, so that those that it has
    sent away together do not come back together. Only what it asks for has to fit.

    Args:
        wait: What the strategy wants.
        retry_after: Seconds that the server asks to wait; 0 for none.
        remaining: Seconds left for the call.
        config: The settings.
        tick: Seconds by which a timer may fire early.
    """
    delay = wait.delay
    is_usual = type(delay) is float and 0.0 <= delay < math.inf
    if not is_usual:
        check.not_negative("next_delay", delay, or_none=True)
    if retry_after:
        longest = config.max_retry_after
        most = math.inf if longest is None else longest
        return _with_hint(wait, retry_after, remaining, most, tick)
    return TOO_LATE if delay >= remaining else wait


def _with_hint(
    wait: Wait, retry_after: float, remaining: float, most: float, tick: float
) -> Decision:
    if retry_after > most or retry_after == math.inf:
        return _TOO_LONG
    if wait.delay >= remaining:
        return TOO_LATE
    if retry_after >= remaining:
        return _TOO_LONG
    jitter = wait.delay if wait.jitter is None else wait.jitter
    added = chance() * min(jitter, remaining - retry_after, most - retry_after)
    seconds = max(up_to_tick(retry_after, tick), retry_after + added)
    if seconds >= remaining:
        seconds = retry_after
    # ">=": a Smithy strategy may have used the hint as its delay.
    return Wait(seconds, "retry_after") if seconds >= wait.delay else wait


_MOST_SWITCHES: Final = 2
"""How often a call goes to the next endpoint without a wait."""

ELSEWHERE: Final = Wait(0.0, "next_endpoint")
"""The decision to go to the next endpoint at once."""

_PAST_OPEN_CIRCUIT: Final = Wait(0.0, "next_endpoint")
"""Like :data:`ELSEWHERE`, but not counted: any number of circuits may be open."""


def overrules(ctx: Context, cause: Exception | None) -> bool:
    """Say whether the next endpoint is asked though the strategy wants no retry.

    Where the circuit of this one is open, or its certificate is bad: that says nothing
    of the others, and nothing was sent.
    """
    if ctx.record.route is None or cause is None:
        return False
    failure = peel(cause)
    is_refused = _is_open_circuit(failure)
    is_bad = isinstance(failure, BAD_CERTIFICATE) and ctx.call.switches < _MOST_SWITCHES
    return (is_refused or is_bad) and is_unsent(failure) and has_untried(ctx)


def _is_open_circuit(failure: BaseException) -> bool:
    """Say whether the circuit of the one endpoint is open."""
    is_refusal = isinstance(failure, RefusedRequestError)
    return is_refusal and bool(attribute_of(failure, "is_of_endpoint"))


def without_wait(
    ctx: Context, cause: Exception | None, wait: Wait, asked: float
) -> tuple[Wait, float]:
    """Return the wait before an attempt elsewhere, and the part that servers ask for.

    After a failure that did not reach a server there is none, twice a call; nor past
    open circuits, as many as there are. The ``Retry-After`` of a 503 is of one server
    alone: it does not matter while another one is well that has not asked for a wait;
    where none is, the shortest one counts.

    Args:
        ctx: The attempt before.
        cause: Its failure, or None.
        wait: The wait that the strategy wants.
        asked: The seconds that the server asks to wait; 0 for none.
    """
    status = status_judged(ctx.record.outcome, cause)
    if cause is None or status is not None:
        is_one = asked and status == UNAVAILABLE
        return wait, _shortest(ctx, asked) if is_one else asked
    failure = peel(cause)
    past_open_circuit = _is_open_circuit(failure)
    may_switch = past_open_circuit or ctx.call.switches < _MOST_SWITCHES
    if may_switch and is_unsent(failure) and has_untried(ctx):
        return _PAST_OPEN_CIRCUIT if past_open_circuit else ELSEWHERE, 0.0
    return wait, asked


def _shortest(ctx: Context, asked: float) -> float:
    """Return the seconds until the first server that a call may try takes requests."""
    call, route = ctx.call, ctx.record.route
    rests = rests_of(call)
    if route is None or route.has_other(rests):
        return 0.0
    now = call.loop.time()
    return max(0.0, min([asked, *(until - now for until in rests.values())]))
