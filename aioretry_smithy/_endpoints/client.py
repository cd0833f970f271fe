"""Balance the requests of a session between the endpoints of a group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._context.chain import check_inside
from .._context.client import DecoratingClient, HttpClient
from .._errors import bad_argument
from .._request.service import ServiceBehind, endpoint_of
from .group import EndpointGroup
from .hooks import BalancingHooks

if TYPE_CHECKING:
    from aiohttp.typedefs import StrOrURL
    from yarl import URL

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
        service: How absolute URLs begin that are for the group, too.
    """

    _serves = "sessions"

    def __init__(
        self, delegate: HttpClient, group: EndpointGroup, service: URL | None = None
    ) -> None:
        super().__init__(delegate)
        self._group, self._url = group, service
        self._service = group._service
        if service is not None:
            self._service = ServiceBehind(group._service, service)
        self._hooks = BalancingHooks(group, self._service)

    @classmethod
    def new_decorator(
        cls, group: EndpointGroup, *, service: StrOrURL | None = None
    ) -> Decorator:
        """Return a decorator that balances between the endpoints of a group.

        Put it inside the clients that retry and hedge, which it may not be around, and
        outside those that break circuits and limit.

        Args:
            group: The endpoints.
            service: How absolute URLs begin that are for the group too, as scheme, host
                and path: for :func:`decorate` and the session of a library that joins
                its URLs itself. What comes after it goes after the URL of an endpoint.

        Raises:
            ValueError: *group* is no group, or *service* no such URL.

        >>> decorator = LoadBalancingClient.new_decorator(
        ...     EndpointGroup.of("http://a.example/v1", "http://b.example/v1"),
        ...     service="https://api.example.com/v1",
        ... )
        """
        if not isinstance(group, EndpointGroup):
            raise bad_argument("group", group, "an EndpointGroup")
        url = None if service is None else endpoint_of("service", service).url

        def decorator(delegate: HttpClient) -> LoadBalancingClient:
            # All that is sent would go to one endpoint, which would learn nothing.
            check_inside(cls.__name__, delegate)
            return cls(delegate, group, url)

        return decorator

    @property
    def group(self) -> EndpointGroup:
        """The endpoints."""
        return self._group

    @property
    def service(self) -> Service:
        """Tells the requests of the group's service from others."""
        return self._service

    def describe(self) -> str:
        """Return the name and the settings of this client."""
        service = "" if self._url is None else f", service={str(self._url)!r}"
        return f"{type(self).__name__}({self._group.describe()}{service})"
