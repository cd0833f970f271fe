"""Send the requests of a block of code to one endpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from .._errors import bad_argument
from .._request.endpoint import origin_key
from .choice import Choice
from .errors import EndpointGroupError
from .waiting import check_open, too_late, why_out

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

    from .._context.context import ClientRequestContext
    from .._request.endpoint import Endpoint, Service
    from .._request.request import HttpRequest
    from .roster import Roster


class Group(Protocol):
    """The group that the requests are for."""

    _service: Service

    @property
    def name(self) -> str:
        """Its name."""
        ...

    def _rosters(
        self, loop: AbstractEventLoop, request: HttpRequest | None = None
    ) -> tuple[Roster, ...]: ...

    async def _change(
        self, loop: AbstractEventLoop, rosters: tuple[Roster, ...], until: float
    ) -> None: ...


def choose_pinned(
    group: Group, ctx: ClientRequestContext, request: HttpRequest, pin: Endpoint
) -> Choice | None:
    """Return the endpoint that was named, also one that is out.

    None where there is no list yet. No other one takes its place, so retries go to it.

    Raises:
        EndpointGroupError: It has left.
        ValueError: It is none of the group's.
    """
    rosters = _rosters_of(group, ctx.call.loop, request)
    for roster in rosters:
        if roster.now() >= roster.due_at:
            roster.catch_up()
        for state in roster.states:
            if _is_meant(pin, state.endpoint):
                return Choice(state, group._service.key)
    if any(each.awaits_list for each in rosters):
        return None
    if any(_is_meant(pin, left) for each in rosters for left in each.left):
        reason = f"request_options(endpoint={str(pin)!r}), which has left"
        raise EndpointGroupError(group.name, reason, why_out(rosters))
    names = ", ".join(str(each.endpoint) for one in rosters for each in one.states)
    expected = f"an endpoint of the group {group.name!r}: {names or 'it has none'}"
    raise bad_argument("endpoint", pin, expected)


async def wait_for_pinned(
    group: Group, ctx: ClientRequestContext, request: HttpRequest, pin: Endpoint
) -> Choice:
    """Return the endpoint that was named once there is a list.

    Raises:
        EndpointGroupError: There was no list in time, or the endpoint has left.
        ValueError: It is none of the group's.
    """
    call = ctx.call
    loop, rosters = call.loop, _rosters_of(group, call.loop, request)
    patience = max(each.patience for each in rosters)
    until = loop.time() + min(patience, call.time_of(call))
    while True:
        chosen = choose_pinned(group, ctx, request, pin)
        if chosen is not None:
            return chosen
        if loop.time() >= until:
            raise too_late(group.name, patience, *rosters)
        await group._change(loop, rosters, until)
        check_open(call)


def _rosters_of(
    group: Group, loop: AbstractEventLoop, request: HttpRequest
) -> tuple[Roster, ...]:
    return group._rosters(loop, request) or group._rosters(loop)


def _is_meant(pin: Endpoint, endpoint: Endpoint) -> bool:
    """Say whether an endpoint is the one that was named, perhaps by its address."""
    if pin == endpoint:
        return True
    if pin.address is not None or endpoint.address is None:
        return False
    scheme, host, port = origin_key(pin.url)
    there = origin_key(endpoint.url)
    return (scheme, host, port) == (there[0], endpoint.address, there[2])
