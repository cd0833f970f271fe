"""Describe a request, and copy it with changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, Self

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from .._masking.mask import DEFAULT_MASK
from .._text import one_word, printable
from .copied_arguments import copy_arguments
from .service import Service
from .swapped import NoContext

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiohttp.typedefs import StrOrURL

    from .._masking.mask import Mask
    from .copied_arguments import Arguments
    from .endpoint import Endpoint


class Goal(Protocol):
    """An endpoint and its keys."""

    key: str
    """The name of the server, for what is kept per server."""

    service_key: str
    """The name of the service, for what is kept per service."""

    endpoint: Endpoint
    """The server."""

    middleware: aiohttp.ClientMiddlewareType | None
    """Connects to its address; None where its name is looked up."""


class HttpRequest(NoContext):
    """A request as the caller made it. Immutable by convention.

    To send another one, pass on a changed copy: :meth:`replace`, :meth:`with_header`.

    Args:
        method: The method, in upper or lower case.
        url: The URL, absolute or relative to *base_url*.
        headers: The headers of this request alone.
        base_url: The base for a relative *url*.
        options: The other arguments of ``session.request()``: ``data``, ``json``,
            ``params``, ``timeout`` and so on.

    >>> request = HttpRequest("get", "/orders", base_url=URL("https://example.com"))
    >>> request.with_header("X-Shop", "7")
    <HttpRequest GET https://example.com/orders>
    """

    __slots__ = ("_base_url", "_url", "arguments", "given", "spelling", "target")

    spelling: str
    """The method as it was given."""

    target: StrOrURL
    """The URL as it was given."""

    arguments: Arguments
    """The :attr:`options` and the headers, for aiohttp; not to be changed.

    Containers and buffers are copies, because the caller could change them.
    """

    given: Arguments
    """The caller's own objects, for the first attempt; not to be changed."""

    route: Goal | None = None
    """The endpoint that was chosen; None without an endpoint group."""

    def __init__(
        self,
        method: str,
        url: StrOrURL,
        *,
        base_url: URL | Service | None = None,
        **options: Any,
    ) -> None:
        self.spelling = method
        self.target = url
        self.given = options
        self.arguments = copy_arguments(options)
        self._base_url = base_url
        self._url: URL | None = None

    @classmethod
    def of_arguments(
        cls,
        method: str,
        target: StrOrURL,
        given: Arguments,
        arguments: Arguments,
        base_url: URL | Service | None,
    ) -> Self:
        """Make a request of the given arguments and their copies."""
        request = cls.__new__(cls)
        request.spelling = method
        request.target = target
        request.given = given
        request.arguments = arguments
        request._base_url = base_url
        request._url = None
        return request

    @property
    def method(self) -> str:
        """The method, in upper case."""
        upper = getattr(self.spelling, "upper", None)
        # aiohttp reports what is no text.
        return self.spelling if upper is None else upper()

    @property
    def name(self) -> str:
        """The name of the call in logs: its method."""
        return self.method

    @property
    def url(self) -> URL:
        """The URL, joined with the session's ``base_url``, without ``params``.

        Raises:
            aiohttp.InvalidUrlClientError: The URL is invalid; aiohttp raises the same.
        """
        if self._url is None:
            try:
                url = URL(self.target)
                if self._base_url is not None and not url.absolute:
                    url = self._base_url.join(url)
            except ValueError as error:
                raise aiohttp.InvalidUrlClientError(self.target) from error
            self._url = url
        return self._url

    @property
    def headers(self) -> CIMultiDict[str]:
        """The headers of this request, without those of the session."""
        return CIMultiDict(self.arguments.get("headers") or ())

    @property
    def options(self) -> Arguments:
        """A copy of the other arguments of ``session.request()``, without headers."""
        own = self.arguments
        options = copy_arguments(own).copy()
        options.pop("headers", None)
        if "data" in own:
            # The next attempts find the wrapped body by the identity of its source.
            options["data"] = own["data"]
        return options

    def replace(self, **changes: Any) -> Self:
        """Return a copy with *changes*.

        Args:
            changes: ``method``, ``url``, ``headers``, or any other argument of
                ``session.request()``; all others stay.

        >>> HttpRequest("GET", "http://example.com/").replace(method="HEAD").method
        'HEAD'
        """
        method = changes.pop("method", self.spelling)
        url = None if "url" in changes else self._url
        target = changes.pop("url", self.target)
        if target is not self.target and isinstance(self._base_url, Service):
            target = self._base_url.renamed(self.target, target)
        own = self.arguments
        # An unchanged argument is a copy already, and must keep its identity.
        new = {name: new for name, new in changes.items() if new is not own.get(name)}
        copies = copy_arguments(new)
        arguments = given = {**own, **changes, **copies}
        if self.given is not own or copies is not new:
            given = {**self.given, **changes, **new}
        copy = self._copy(method, target, given, arguments)
        copy._url = url
        return copy

    def with_header(self, name: str, value: str) -> Self:
        """Return a copy whose header *name* has just this *value*."""
        own = self.arguments
        arguments = given = with_header(own, name, value)
        if self.given is not own:
            given = {**self.given, "headers": arguments["headers"]}
        copy = self._copy(self.spelling, self.target, given, arguments)
        copy._url = self._url
        return copy

    def without_body(self) -> HttpRequest:
        """Return the request without its body, for a log to keep."""
        arguments = self.arguments
        if "data" not in arguments and "json" not in arguments:
            return self
        if arguments.get("data") is None and arguments.get("json") is None:
            return self
        bare = {**arguments, "data": None, "json": None}
        copy = self._copy(self.spelling, self.target, bare, bare)
        copy._url = self._url
        return copy

    def looks_like(self, other: HttpRequest) -> bool:
        """Say whether it has the method, the URL and the headers of another one."""
        if self is other:
            return True
        own, others = self.arguments, other.arguments
        return (
            self.method == other.method
            and (
                (
                    self.target is other.target
                    and own.get("params") is others.get("params")
                )
                or self.full_url() == other.full_url()
            )
            and (
                own.get("headers") is others.get("headers")
                or self.merged_headers(None) == other.merged_headers(None)
            )
        )

    def _copy(
        self, method: str, target: StrOrURL, given: Arguments, arguments: Arguments
    ) -> Self:
        """Return a request with the same base and these arguments."""
        return self.of_arguments(method, target, given, arguments, self._base_url)

    def described(self, mask: Mask) -> str:
        """Return the method and the URL, credentials hidden."""
        return f"{self.method} {mask.text(str(self.full_url()))}"

    def full_url(self) -> URL:
        """Return the URL with ``params``; never raises, for logs."""
        try:
            return self.url.extend_query(self.arguments.get("params") or {})
        except Exception:
            # aiohttp reports an invalid URL; a log must not raise.
            return self._url or URL.build(path=one_word(str(self.target)), encoded=True)

    def merged_headers(self, defaults: Mapping[str, str] | None) -> CIMultiDict[str]:
        """Return the headers over *defaults*; never raises, for logs."""
        merged = CIMultiDict(defaults or {})
        try:
            headers = self.headers
        except (TypeError, ValueError):
            return merged
        for name in headers:
            merged.popall(name, None)
        merged.extend(headers)
        return merged

    def __repr__(self) -> str:
        return printable(f"<{type(self).__name__} {self.described(DEFAULT_MASK)}>")


def with_header(arguments: Arguments, name: str, value: str) -> Arguments:
    """Return the arguments of a request, whose header *name* has just this *value*."""
    headers = CIMultiDict(arguments.get("headers") or ())
    headers[name] = value
    return {**arguments, "headers": headers}
