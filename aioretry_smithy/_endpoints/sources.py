"""Tell a group its endpoints: those that it was given, or those that a query finds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from .._errors import bad_argument
from .._request.endpoint import Endpoint, origin_key
from .discovery import Answer, Discovery, Listed, checked_refresh

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from aiohttp.typedefs import StrOrURL
    from yarl import URL

    from .roster import Roster


class Source(Protocol):
    """Tells a group its endpoints."""

    usual_name: str | None
    """The name of a group that was given none; None for a number."""

    service_key: str | None
    """The name of the service, where that is not the name of the group."""

    may_fill: bool
    """Whether there may be other endpoints later."""

    has_addresses: bool
    """Whether connections go to addresses, of one endpoint at least."""

    def url(self) -> URL | None:
        """Return how the URLs of the service begin; None where the endpoints say it."""
        ...

    def origin(self) -> URL | None:
        """Return a URL of the only origin that all endpoints have; None for several."""
        ...

    def fill(self, roster: Roster) -> None:
        """Tell a new roster what is known, and how to know more."""
        ...


class GivenSource:
    """Tells the endpoints that it was given.

    Args:
        words: How a group with it is made, for descriptions.
        may_fill: Whether there may be others later.
    """

    service_key: str | None = None

    def __init__(self, words: str, *, may_fill: bool) -> None:
        self._words = words
        self.may_fill = may_fill
        self.usual_name: str | None = None
        self.has_addresses = False
        self._listed: list[Listed] = []

    def give(self, endpoints: Iterable[StrOrURL | Endpoint]) -> None:
        """Replace the endpoints; equal ones are one.

        Raises:
            ValueError: Something among them is no endpoint.
        """
        if isinstance(endpoints, str) or not isinstance(endpoints, Iterable):
            raise bad_argument("endpoints", endpoints, "a list of endpoints")
        found = [
            each if isinstance(each, Endpoint) else Endpoint(each) for each in endpoints
        ]
        self._listed = [Listed(each) for each in dict.fromkeys(found)]
        self.has_addresses = any(each.address is not None for each in found)

    def name(self) -> str:
        """Return the origins of the endpoints."""
        origins = (str(each.endpoint.url.origin()) for each in self._listed)
        return ", ".join(dict.fromkeys(origins))

    def url(self) -> URL | None:
        """Return the URL of the first one."""
        return self._listed[0].endpoint.url if self._listed else None

    def origin(self) -> URL | None:
        """Return a URL of the only origin that all endpoints have; None for several."""
        origins = {origin_key(each.endpoint.url) for each in self._listed}
        return self.url() if len(origins) == 1 else None

    def fill(self, roster: Roster) -> None:
        """Tell the endpoints."""
        roster.set_listed(self._listed)

    def __repr__(self) -> str:
        listed = ", ".join(repr(each.endpoint) for each in self._listed)
        return f"{self._words}({listed}"


class FoundSource:
    """Tells the endpoints that a query finds, again and again.

    Args:
        ask: Finds the endpoints, or raises.
        words: How a group with it is made, for descriptions.
        name: The name of a group that was given none.
        refresh: The shortest and the longest time, in seconds, that an answer holds.
        url: How the URLs of the service begin, where all endpoints share that.
        known: The answer, where nobody has to be asked.
        cut: Whether a query can be cancelled.

    Raises:
        ValueError: *refresh* is not as described.
    """

    may_fill = True

    def __init__(
        self,
        ask: Callable[[], Coroutine[object, None, Answer]],
        words: str,
        name: str,
        refresh: tuple[float, float],
        *,
        url: URL | None = None,
        known: Answer | None = None,
        cut: bool = True,
    ) -> None:
        self._ask = ask
        self._words = words
        self.usual_name: str | None = name
        self._refresh = checked_refresh(refresh)
        self._url = url
        self.service_key = None if url is None else Endpoint(url).key
        self.has_addresses = url is not None
        self._known = known
        self._cut = cut

    @classmethod
    def behind(
        cls,
        url: StrOrURL,
        ask: Callable[[], Coroutine[object, None, Answer]],
        words: str,
        refresh: tuple[float, float],
        *,
        known: Answer | None,
        cut: bool,
    ) -> FoundSource:
        """Make one whose endpoints are all behind the name in a *url*."""
        shown = Endpoint(url).url
        name = str(shown.origin()) if shown.raw_path == "/" else str(shown)
        return cls(ask, words, name, refresh, url=shown, known=known, cut=cut)

    def url(self) -> URL | None:
        """Return how the URLs of the service begin, where all endpoints share that."""
        return self._url

    def origin(self) -> URL | None:
        """Return the same."""
        return self._url

    def fill(self, roster: Roster) -> None:
        """Let the roster ask when it is used."""
        if self._known is not None:
            roster.set_listed(self._known.listed)
            return
        roster.discovery = Discovery(
            self._ask,
            roster,
            refresh=self._refresh,
            cut=self._cut,
            on_failed=roster.note_failed_query,
        )
        roster.review()

    def __repr__(self) -> str:
        return f"{self._words}({self.usual_name!r}"
