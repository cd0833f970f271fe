"""Define where a request goes that one of several servers may get."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from .._request.request import Goal

if TYPE_CHECKING:
    from collections.abc import Container

    from .._request.endpoint import Endpoint


class Route(Goal, Protocol):
    """Where a request goes: to one endpoint of a group.

    The record of the request has it, for views, for the transport and for retries.
    """

    @property
    def is_out(self) -> bool:
        """Whether the endpoint is left alone now."""
        ...

    def has_other(self, tried: Container[Endpoint]) -> bool:
        """Say whether an endpoint of the group is well that was not tried."""
        ...
