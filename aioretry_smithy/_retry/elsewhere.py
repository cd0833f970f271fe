"""Decide whether the next attempt goes to another endpoint of a group, at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import aiohttp

from .._call.server_work import UNAVAILABLE, status_judged
from .._call.tries import has_untried, is_unsent, rests_of
from .._errors import RefusedRequestError
from .._failures.failure import peel
from .wait import Wait

if TYPE_CHECKING:
    from .._call.call import Context

_MOST_SWITCHES: Final = 2
"""How often a call goes to the next endpoint without a wait."""

_BAD_SERVERS = (
    aiohttp.ClientConnectorCertificateError,
    aiohttp.ServerFingerprintMismatch,
)

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
    is_bad = isinstance(failure, _BAD_SERVERS) and ctx.call.switches < _MOST_SWITCHES
    return (is_refused or is_bad) and is_unsent(failure) and has_untried(ctx)


def _is_open_circuit(failure: BaseException) -> bool:
    """Say whether the circuit of the one endpoint is open."""
    is_refusal = isinstance(failure, RefusedRequestError)
    return is_refusal and bool(getattr(failure, "is_of_endpoint", False))


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
