"""Know where a request goes that one group alone does not choose for."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from .._call.tries import tries_of
from .trial import Trial

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    import aiohttp

    from .._context.context import ClientRequestContext
    from .._request.endpoint import Endpoint
    from .roster import Roster
    from .state import EndpointState

    Permit: TypeAlias = EndpointState | Trial
    Chosen: TypeAlias = "EndpointState | Trial | Choice"


class Choice:
    """The way of a request to an endpoint, by a pin or by groups that follow another.

    Args:
        permit: What was chosen.
        service_key: The name of the service, for what is kept per service.
        rosters: What else might serve the request, in order of preference.
    """

    __slots__ = (
        "_rosters",
        "endpoint",
        "key",
        "middleware",
        "permit",
        "service_key",
        "state",
    )

    endpoint: Endpoint
    """The endpoint."""

    key: str
    """The name of its server, for what is kept per server."""

    service_key: str
    """The name of the service, for what is kept per service."""

    middleware: aiohttp.ClientMiddlewareType | None
    """Connects to its address; None where its name is looked up."""

    permit: Permit
    """What was chosen: an endpoint, or a trial of one."""

    state: EndpointState
    """What is known of the endpoint."""

    def __init__(
        self, permit: Permit, service_key: str, rosters: Sequence[Roster] = ()
    ) -> None:
        self.permit = permit
        self.state = state = permit.state
        self.endpoint, self.key = state.endpoint, state.key
        self.middleware = state.middleware
        self.service_key = service_key
        self._rosters = rosters

    @property
    def is_out(self) -> bool:
        """Whether the endpoint is left alone now."""
        return self.state.is_out

    def has_other(self, tried: Container[Endpoint]) -> bool:
        """Say whether one that was not tried is well, in the first group with any."""
        return bool(self._untried(tried))

    def other_for(self, ctx: ClientRequestContext) -> EndpointState | None:
        """Return a healthy endpoint that the call has not tried, or None."""
        untried = self._untried({self.endpoint, *tries_of(ctx.call)})
        return untried[0].roster.choose(ctx, untried) if untried else None

    def to(self, state: EndpointState) -> Choice:
        """Return the way to another endpoint."""
        return Choice(state, self.service_key, self._rosters)

    def _untried(self, tried: Container[Endpoint]) -> Sequence[EndpointState]:
        well: Sequence[EndpointState] = ()
        for roster in self._rosters:
            well = well or roster.well_now()
        return [each for each in well if each.endpoint not in tried]


def give_up(chosen: Chosen) -> None:
    """Give the place of a trial back: the request is not sent to that endpoint."""
    permit = chosen.permit if isinstance(chosen, Choice) else chosen
    if isinstance(permit, Trial):
        permit.stop()
        permit.give_up()
