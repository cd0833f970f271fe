"""List the endpoints of a group that knows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from .._errors import bad_argument
from .._request.endpoint import Endpoint, origin_key
from .roster import Listed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aiohttp.typedefs import StrOrURL
    from yarl import URL

    from .roster import Roster


class Source(Protocol):
    """Lists the endpoints of a group."""

    usual_name: str
    """The name of a group that was given none."""

    may_fill: bool
    """Whether there may be more endpoints later."""

    def url(self) -> URL | None:
        """Return how the URLs of the service begin; None where the endpoints say it."""
        ...

    def origin(self) -> URL | None:
        """Return a URL of the only origin that all endpoints have; None for several."""
        ...

    def list_known(self, roster: Roster) -> None:
        """Tell a new roster the endpoints that are known."""
        ...


class StaticSource:
    """Lists the endpoints that it was given.

    Args:
        endpoints: The endpoints, or their URLs.

    Raises:
        ValueError: There is none, or it is no endpoint.
    """

    may_fill = False

    def __init__(self, endpoints: Sequence[StrOrURL | Endpoint]) -> None:
        if not endpoints:
            raise bad_argument("endpoints", endpoints, "at least one")
        found = [
            each if isinstance(each, Endpoint) else Endpoint(each) for each in endpoints
        ]
        self._listed = [Listed(each) for each in dict.fromkeys(found)]
        self.usual_name = ", ".join(
            dict.fromkeys(str(each.url.origin()) for each in found)
        )

    def url(self) -> URL:
        """Return the URL of the first one."""
        return self._listed[0].endpoint.url

    def origin(self) -> URL | None:
        """Return a URL of the only origin that all endpoints have; None for several."""
        origins = {origin_key(each.endpoint.url) for each in self._listed}
        return self.url() if len(origins) == 1 else None

    def list_known(self, roster: Roster) -> None:
        """Tell the endpoints."""
        roster.set_listed(self._listed)

    def __repr__(self) -> str:
        return f"of({', '.join(repr(each.endpoint) for each in self._listed)}"
