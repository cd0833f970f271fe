"""Hear of changes in a group of endpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .._request.endpoint import Endpoint


class Known(Protocol):
    """Shows a listener the state of an endpoint."""

    ejected_until: float | None
    """When it may come back; None where it is not ejected."""

    @property
    def reason(self) -> str | None:
        """Why it is out; None while it is well."""
        ...


class Group(Protocol):
    """Shows a listener a group."""

    @property
    def name(self) -> str:
        """The name of the group in logs, metrics and keys."""
        ...

    @property
    def endpoints(self) -> Sequence[Endpoint]:
        """The endpoints that it has now."""
        ...

    @property
    def states(self) -> Mapping[Endpoint, Known]:
        """Show the state of each endpoint now."""
        ...


class EndpointGroupListener:
    """Hears of changes in a group; a subclass overrides what it wants to hear.

    The methods are plain. What they raise is logged, and changes nothing.

    >>> class Bell(EndpointGroupListener):
    ...     def on_endpoints_changed(self, group, endpoints):
    ...         print(f"{group.name} has {len(endpoints)} endpoints")
    """

    def on_endpoints_changed(self, group: Group, endpoints: Sequence[Endpoint]) -> None:
        """Hear that the group has other endpoints, from now on these."""

    def on_ejected(
        self, group: Group, endpoint: Endpoint, reason: str, until: float
    ) -> None:
        """Hear that an endpoint is out, each time that it is, for longer too.

        Args:
            group: The group.
            endpoint: The endpoint.
            reason: ``connect_failures``, ``consecutive_failures``, ``failure_rate``,
                ``trial_failed``, ``retry_after``, ``circuit_open`` or ``unhealthy``.
            until: When it may come back, by the event loop's clock; ``inf`` while
                checks of its health fail.
        """

    def on_returned(self, group: Group, endpoint: Endpoint) -> None:
        """Hear that an endpoint is well again."""
