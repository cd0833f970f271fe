"""Refuse a request for which there is no endpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._errors import LimitedRequestError

if TYPE_CHECKING:
    from collections.abc import Mapping


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
    """What is wrong."""

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
    """There was no endpoint within the time that a request waits for one."""
