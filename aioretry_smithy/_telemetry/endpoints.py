"""Describe the endpoints of groups in attributes and labels."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from .._text import encodable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .._context.context import ClientRequestContext
    from .._endpoints.state import Group, Known
    from .._request.request import HttpRequest
    from .labels import Attributes

STATES: Final = "ready", "ejected", "unhealthy"
"""How an endpoint may be."""

REASONS: Final = (
    *("connect_failures", "consecutive_failures", "failure_rate", "trial_failed"),
    *("retry_after", "circuit_open", "unhealthy"),
)
"""Why an endpoint may be out."""


class Endpoints(NamedTuple):
    """The number of endpoints of a group in one state."""

    endpoint: str | None
    """The name of the endpoint; None for all endpoints of the group."""

    state: str
    """The state, one of :data:`STATES`."""

    number: int
    """How many endpoints are in that state."""


def counted(group: Group, *, by_endpoint: bool) -> Iterator[Endpoints]:
    """Count the endpoints of a group by their states, or each by itself."""
    states = [(str(each), _state(known)) for each, known in group.states.items()]
    if not by_endpoint:
        numbers = Counter(state for _, state in states)
        yield from (Endpoints(None, state, numbers[state]) for state in STATES)
        return
    # Two paths at one address have one text, and Prometheus takes each series once.
    of_each = Counter(states)
    for name in dict.fromkeys(name for name, _ in states):
        yield from (Endpoints(name, each, of_each[name, each]) for each in STATES)


def _state(endpoint: Known) -> str:
    if endpoint.reason == "unhealthy":
        return "unhealthy"
    return "ready" if endpoint.ejected_until is None else "ejected"


def peer_attributes(ctx: ClientRequestContext, request: HttpRequest) -> Attributes:
    """Name the one of several servers that a request goes to; its address if known."""
    endpoint = None if request.route is None else ctx.endpoint
    if endpoint is None:
        return {}
    attributes: Attributes = {"aioretry_smithy.endpoint": encodable(str(endpoint))}
    if endpoint.address is not None:
        attributes["network.peer.address"] = endpoint.address
        attributes["network.peer.port"] = endpoint.url.port or 0
    return attributes
