"""The choice of an endpoint: the way to it, and the errors where there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from .._call.tries import tries_of
from .._errors import LimitedRequestError
from .._policies.queues import unsent
from .ejection import Trial

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    import aiohttp

    from .._context.context import ClientRequestContext
    from .._request.endpoint import Endpoint
    from .roster import Roster
    from .state import EndpointState

Permit: TypeAlias = "EndpointState | Trial"
Chosen: TypeAlias = "EndpointState | Trial | Choice"


class EndpointGroupError(LimitedRequestError):
    """There is no endpoint for the request; it was not sent.

    It may be sent again, whatever its method. No circuit breaker and no retry limiter
    counts it.

    Args:
        group: The name of the group.
        reason: What is wrong.
        endpoints: Each endpoint of the group, with why it cannot be chosen.
    """

    group: str
    """The name of the group."""

    reason: str
    """The reason for the error."""

    endpoints: Mapping[str, str]
    """Each endpoint of the group, with why it cannot be chosen."""

    def __init__(self, group: str, reason: str, endpoints: Mapping[str, str]) -> None:
        super().__init__(group, reason, endpoints)
        self.group = group
        self.reason = reason
        self.endpoints = endpoints

    def __str__(self) -> str:
        listed = ", ".join(f"{name} ({why})" for name, why in self.endpoints.items())
        return f"endpoint group {self.group!r}: {self.reason}{listed and ': '}{listed}"


class EmptyEndpointGroupError(EndpointGroupError):
    """The group has no endpoint that could be chosen, and none will come."""


class EndpointSelectionTimeoutError(EndpointGroupError):
    """No endpoint was available within the selection timeout."""


class Choice:
    """The way of a request to an endpoint, by a pin or by groups that follow another.

    Args:
        permit: What was chosen.
        service_key: The name of the service, for what is kept per service.
        rosters: What else might serve the request, in order of preference.
    """

    endpoint: Endpoint
    """The endpoint."""

    key: str
    """The name of its server, for what is kept per server."""

    service_key: str
    """The name of the service, for what is kept per service."""

    middleware: aiohttp.ClientMiddlewareType | None
    """Connects to the endpoint's address; None if its host name is resolved."""

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
        """Say whether a healthy untried endpoint exists, in the first healthy group."""
        return bool(self._untried(tried))

    def other_for(self, ctx: ClientRequestContext) -> EndpointState | None:
        """Return a healthy endpoint that the call has not tried, or None."""
        untried = self._untried({self.endpoint, *tries_of(ctx.call)})
        return untried[0].roster.choose(ctx, untried) if untried else None

    def to(self, state: EndpointState) -> Choice:
        """Return the route to a different endpoint."""
        return Choice(state, self.service_key, self._rosters)

    def _untried(self, tried: Container[Endpoint]) -> Sequence[EndpointState]:
        well: Sequence[EndpointState] = ()
        for roster in self._rosters:
            well = well or roster.healthy()
        return [each for each in well if each.endpoint not in tried]


def release_trial(chosen: Chosen) -> None:
    """Release the trial slot of a request that is not sent."""
    permit = chosen.permit if isinstance(chosen, Choice) else chosen
    if isinstance(permit, Trial):
        permit.stop()
        permit.give_up()


def too_late(
    name: str, seconds: float, rosters: Sequence[Roster]
) -> EndpointSelectionTimeoutError:
    """Make the error for a request that has found no endpoint in time.

    Args:
        name: The name of the group.
        seconds: How long a request waits.
        rosters: What it could have found.
    """
    failures = [each.last_failure for each in rosters if each.last_failure is not None]
    words = "; ".join(f"{type(each).__name__}: {each}" for each in failures)
    reason = f"no endpoint within {seconds:g} s{words and f' ({words})'}"
    return unsent(EndpointSelectionTimeoutError(name, reason, why_out(rosters)))


def empty(name: str, rosters: Sequence[Roster]) -> EmptyEndpointGroupError:
    """Make the error for a request that no endpoint will ever come for."""
    return unsent(EmptyEndpointGroupError(name, "empty", why_out(rosters)))


def why_out(rosters: Sequence[Roster]) -> dict[str, str]:
    """Return each endpoint as text, with why it is not chosen."""
    found: dict[str, str] = {}
    for each in reversed(rosters):
        found = each.why_out() | found
    return found
