"""Wait for an endpoint, and end the wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._waiting.queued import unsent
from .errors import EmptyEndpointGroupError, EndpointSelectionTimeoutError

if TYPE_CHECKING:
    from .._call.call import Call
    from .._context.context import ClientRequestContext
    from .._request.request import HttpRequest
    from .roster import Roster
    from .state import EndpointState
    from .trial import Trial


async def ready_in(roster: Roster, until: float) -> bool:
    """Wait for endpoints; say whether there are any by then."""
    roster.catch_up()
    while not roster.is_ready and roster.may_fill and roster.now() < until:
        await roster.wait(until)
    return roster.is_ready


async def choice_in(
    roster: Roster,
    name: str,
    ctx: ClientRequestContext,
    request: HttpRequest | None,
) -> EndpointState | Trial:
    """Choose an endpoint for a request once there is one.

    Args:
        roster: The endpoints.
        name: The name of the group.
        ctx: The call or the attempt.
        request: The request; None for one that is no trial.

    Raises:
        EndpointGroupError: There is none in time.
    """
    call = ctx.call
    loop = call.loop
    until = loop.time() + min(roster.patience, call.time_of(call))
    while roster.may_fill:
        await roster.wait(until)
        check_open(call)
        if loop.time() >= until:
            roster.serve_expired()
        chosen = roster.pick(ctx, request)
        if chosen is not None:
            return chosen
        if loop.time() >= until:
            raise too_late(name, roster.patience, roster)
    raise empty(name, roster)


def check_open(call: Call) -> None:
    """Refuse a request whose session was closed during the wait.

    Raises:
        RuntimeError: It was.
    """
    if call.session is not None and call.session.closed:
        raise RuntimeError("Session is closed")


def too_late(
    name: str, seconds: float, *rosters: Roster
) -> EndpointSelectionTimeoutError:
    """Make the error for a request that has found no endpoint in time.

    Args:
        name: The name of the group.
        seconds: How long a request waits.
        rosters: What it could have found.
    """
    failures = [each.last_failure for each in rosters if each.last_failure is not None]
    told = "; ".join(f"{type(each).__name__}: {each}" for each in failures)
    reason = f"no endpoint within {seconds:g} s{told and f' ({told})'}"
    return unsent(EndpointSelectionTimeoutError(name, reason, why_out(rosters)))


def empty(name: str, *rosters: Roster) -> EmptyEndpointGroupError:
    """Make the error for a request that no endpoint will ever come for."""
    return unsent(EmptyEndpointGroupError(name, "empty", why_out(rosters)))


def why_out(rosters: tuple[Roster, ...]) -> dict[str, str]:
    """Return each endpoint as text, with why it is not chosen."""
    found: dict[str, str] = {}
    for each in reversed(rosters):
        found = each.why_out() | found
    return found
