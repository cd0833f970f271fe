"""Know which requests are for one of several servers, and join their URLs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from yarl import URL

from .endpoint import Endpoint, origin_key

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from aiohttp.typedefs import StrOrURL

_K = TypeVar("_K", bound="Hashable")
_V = TypeVar("_V")

_ROOT: Final = URL("http://root.invalid/")
_MOST_KEPT: Final = 1024


class Service:
    """Stands for several servers in place of a base URL, and finds their requests.

    Args:
        key: Its name, for what is kept per service.
        url: Finds how its URLs begin as they are shown; None before that is known.
        origin: Finds a URL whose origin absolute URLs may have; None for none.
    """

    __slots__ = ("__weakref__", "_found", "_origin", "_url", "key")

    key: str
    """Its name, for what is kept per service."""

    def __init__(
        self,
        key: str,
        url: Callable[[], URL | None],
        origin: Callable[[], URL | None],
    ) -> None:
        self.key = key
        self._url = url
        self._origin = origin
        self._found: dict[StrOrURL, URL | None] = {}

    def beginning(self) -> URL | None:
        """Return how its URLs begin as they are shown; None before that is known."""
        return self._url()

    def join(self, url: URL) -> URL:
        """Return a relative URL after the beginning; as it is where none is known."""
        base = self._url()
        return url if base is None else joined(base, from_root(url))

    def whole(self, asked: URL) -> URL:
        """Return what :meth:`find` has found as a URL with the service's origin."""
        return asked if asked.absolute else self.join(asked)

    def find(self, target: StrOrURL) -> URL | None:
        """Return what one of the servers is asked for: a URL, from the root or whole.

        That is the target with its dots resolved; None where it is of another origin,
        or no URL.
        """
        try:
            found = self._found.get(target, _ROOT)
        except TypeError:
            return None
        if found is _ROOT:
            found = self._find(target)
            keep(self._found, target, found)
        return found

    def _find(self, target: StrOrURL) -> URL | None:
        try:
            url = URL(target)
        except (TypeError, ValueError):
            # aiohttp reports it when the request is sent.
            return None
        if not (url.absolute or url.scheme):
            return from_root(url)
        origin = self._origin()
        is_ours = origin is not None and origin_key(url) == origin_key(origin)
        return url if is_ours else None

    def renamed(self, before: StrOrURL, target: StrOrURL) -> StrOrURL:
        """Return the target that replaces one *before*, from the root if both are ours.

        The new one may begin as the service's URLs are shown.
        """
        base = self._url()
        if base is None or self.find(before) is None:
            return target
        try:
            return path_after(base, URL(target)) or target
        except (TypeError, ValueError):
            return target

    def forget(self) -> None:
        """Find targets anew, because the servers have changed."""
        self._found.clear()

    def __repr__(self) -> str:
        return f"Service({self.key!r})"


def from_root(url: URL) -> URL:
    """Return a relative URL with its dots resolved, beginning with a slash."""
    return _ROOT.join(url).relative()


class ServiceBehind(Service):
    """A service that URLs of another beginning are for, too.

    Args:
        service: The service.
        url: The beginning, with a slash at its end.
    """

    __slots__ = ("_beginning", "_service")

    def __init__(self, service: Service, url: URL) -> None:
        super().__init__(service.key, service.beginning, lambda: None)
        self._service = service
        self._beginning = url

    def find(self, target: StrOrURL) -> URL | None:
        """Return what one of the servers is asked for; None if none of them is."""
        found = self._service.find(target)
        return super().find(target) if found is None else found

    def _find(self, target: StrOrURL) -> URL | None:
        try:
            url = URL(target)
        except (TypeError, ValueError):
            # aiohttp reports it when the request is sent.
            return None
        beginning = self._beginning
        if origin_key(url) != origin_key(beginning):
            return None
        url = joined(url.origin(), from_root(url.relative()))
        if f"{url.raw_path}/" == beginning.raw_path:
            whole = url.with_path(beginning.raw_path, encoded=True)
            url = whole.with_query(url.query)
        return path_after(beginning, url)


def endpoint_of(name: str, given: StrOrURL | Endpoint) -> Endpoint:
    """Return the endpoint that an argument is, or is the URL of.

    Raises:
        ValueError: It is none.
    """
    if isinstance(given, Endpoint):
        return given
    try:
        return Endpoint(given)
    except ValueError as error:
        raise ValueError(str(error).replace("url:", f"{name}:", 1)) from None


def joined(base: URL, path: URL) -> URL:
    """Return a URL whose path and query are those of *path*, after those of *base*."""
    return URL.build(
        scheme=base.scheme,
        authority=base.raw_authority,
        path=base.raw_path + path.raw_path.removeprefix("/"),
        query_string=path.raw_query_string,
        fragment=path.raw_fragment,
        encoded=True,
    )


def path_after(base: URL, url: URL) -> URL | None:
    """Return a relative URL that :func:`joined` to *base* is *url*; None for none."""
    start = base.raw_path
    if origin_key(url) != origin_key(base) or not url.raw_path.startswith(start):
        return None
    return URL.build(
        path="/" + url.raw_path.removeprefix(start),
        query_string=url.raw_query_string,
        fragment=url.raw_fragment,
        encoded=True,
    )


def keep(values: dict[_K, _V], key: _K, value: _V) -> None:
    """Keep a value that can be made anew; all are dropped when there are too many."""
    if len(values) >= _MOST_KEPT:
        values.clear()
    values[key] = value
