"""Make the OpenTelemetry instruments for groups of endpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from opentelemetry.metrics import CallbackOptions, Meter, Observation

from .._text import encodable
from .endpoints import counted
from .labels import Names
from .registry import WeakRegistry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .._endpoints.state import Group

_ENDPOINT: Final = "aioretry_smithy.endpoint"


class EndpointGroupInstruments:
    """The instruments for groups of endpoints, and those that gauges show.

    All of one meter are the same; what differs is whether a listener wants to tell
    endpoints from one another.
    """

    def __init__(self, meter: Meter) -> None:
        self.groups: WeakRegistry[Group] = WeakRegistry()
        self.of_each: WeakRegistry[Group] = WeakRegistry()
        self._names = Names()
        self.ejections = meter.create_counter(
            "aioretry_smithy.ejections", "{ejection}", "How often endpoints were out."
        )
        meter.create_observable_up_down_counter(
            "aioretry_smithy.endpoints",
            [self._observe],
            "{endpoint}",
            "Endpoints of groups.",
        )

    def show(self, group: Group, *, by_endpoint: bool) -> None:
        """Show a group, perhaps each of its endpoints."""
        self.groups.add(group)
        if by_endpoint:
            self.of_each.add(group)

    def attributes(self, group: Group, endpoint: str | None) -> dict[str, str]:
        """Say which group is meant, and which endpoint of it, if one is."""
        attributes = {"aioretry_smithy.endpoint_group.name": encodable(group.name)}
        if endpoint is not None:
            attributes[_ENDPOINT] = self._names[endpoint]
        return attributes

    def _observe(self, options: CallbackOptions) -> Iterator[Observation]:
        each = {id(group) for group in self.of_each.all()}
        for group in self.groups.all():
            for found in counted(group, by_endpoint=id(group) in each):
                attributes = self.attributes(group, found.endpoint)
                attributes["aioretry_smithy.endpoint.state"] = found.state
                yield Observation(found.number, attributes)
