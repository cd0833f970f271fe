"""Let a program say which endpoints a group has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from .group import EndpointGroup
from .settings import GroupSettings
from .sources import GivenSource

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aiohttp.typedefs import StrOrURL

    from .._request.endpoint import Endpoint
    from .settings import Settings


class DynamicEndpointGroup(EndpointGroup):
    """A group whose endpoints the program sets: from Consul, etcd, a file.

    Requests wait while there is none. After Armeria's ``DynamicEndpointGroup``.

    Args:
        endpoints: URLs, or :class:`Endpoint` objects, to begin with; there may be none.
        settings: As for :meth:`EndpointGroup.of`; the ``name`` is a number by default.

    Raises:
        ValueError: An argument is not as described.

    >>> group = DynamicEndpointGroup(name="orders")
    >>> group.set_endpoints(["http://10.0.0.3:8080", "http://10.0.0.7:8080"])
    >>> len(group.endpoints)
    2
    """

    def __init__(
        self,
        endpoints: Iterable[StrOrURL | Endpoint] = (),
        **settings: Unpack[Settings],
    ) -> None:
        self._given = source = GivenSource(type(self).__name__, may_fill=True)
        source.give(endpoints)
        super().__init__(source, GroupSettings(**settings))

    def set_endpoints(self, endpoints: Iterable[StrOrURL | Endpoint]) -> None:
        """Replace the endpoints; what is known of those that stay is kept.

        Requests under way to others end; there is no new one. Call it in the event loop
        of the requests, or outside of any.

        Args:
            endpoints: URLs, or :class:`Endpoint` objects; equal ones are one.

        Raises:
            ValueError: Something among them is no endpoint.
        """
        self._given.give(endpoints)
        self._service.forget()
        if self._roster is not None:
            self._given.fill(self._roster)
