"""Balance the requests of a session between the endpoints of a group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._context.client import DecoratingClient, HttpClient
from .._errors import bad_argument
from .group import EndpointGroup
from .hooks import BalancingHooks

if TYPE_CHECKING:
    from .._context.client import Decorator
    from .._request.service import Service


class LoadBalancingClient(DecoratingClient[HttpClient]):
    """Sends each request of a service to one endpoint of a group.

    :class:`SessionBuilder` puts one in place where it gets a group. Inside a retrying
    or a hedging client, each attempt goes to an endpoint of its own; ``ctx.endpoint``
    says which one. Requests to other origins pass as they are.

    >>> group = EndpointGroup.of("http://a.example", "http://b.example")
    >>> decorator = LoadBalancingClient.new_decorator(group)

    Args:
        delegate: The next client inwards.
        group: The endpoints.
    """

    _serves = "sessions"

    def __init__(self, delegate: HttpClient, group: EndpointGroup) -> None:
        super().__init__(delegate)
        self._group = group
        self._hooks = BalancingHooks(group, group._service)

    @classmethod
    def new_decorator(cls, group: EndpointGroup) -> Decorator:
        """Return a decorator that balances between the endpoints of a group.

        Put it inside the clients that retry and hedge, and outside those that break
        circuits and limit.

        Args:
            group: The endpoints.

        Raises:
            ValueError: *group* is no group.
        """
        if not isinstance(group, EndpointGroup):
            raise bad_argument("group", group, "an EndpointGroup")

        def decorator(delegate: HttpClient) -> LoadBalancingClient:
            return cls(delegate, group)

        return decorator

    @property
    def group(self) -> EndpointGroup:
        """The endpoints."""
        return self._group

    @property
    def service(self) -> Service:
        """What tells the requests of the service from others."""
        return self._group._service

    def describe(self) -> str:
        """Return the name and the settings of this client."""
        return f"{type(self).__name__}({self._group.describe()})"
