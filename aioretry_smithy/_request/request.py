"""Describe a request, of HTTP or of a function, and copy it with changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Protocol, Self, TypeVar

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from .._errors import bad_argument, bad_secret, checked_name
from .._failures.kept_cause import CallBound
from .._text.mask import DEFAULT_MASK, Mask
from .._text.printable import one_word, printable
from .arguments import Arguments, copy_arguments
from .endpoint import Endpoint, Service, origin_key, url_of

if TYPE_CHECKING:
    from collections.abc import Container

    from aiohttp.typedefs import StrOrURL


_R = TypeVar("_R", bound="HttpRequest")
_new = object.__new__


class NoContext(CallBound):
    """Raises for attributes of a context that are read from a request.

    Mostly a decorator has swapped the arguments of its delegate.
    """

    __slots__ = ()

    @property
    def call(self) -> NoReturn:
        raise bad_argument("ctx", self, "a ClientRequestContext, before the request")

    record = call


class Route(Protocol):
    """Where a request goes: to one endpoint of a group.

    Its record has it too, for views, for the transport and for retries.
    """

    key: str
    """The name of the server, for what is kept per server."""

    service_key: str
    """The name of the service, for what is kept per service."""

    endpoint: Endpoint
    """The server."""

    middleware: aiohttp.ClientMiddlewareType | None
    """Connects to the endpoint's address; None if its host name is resolved."""

    @property
    def is_out(self) -> bool:
        """Whether the endpoint is ejected, paused, or unhealthy now."""
        ...

    def has_other(self, tried: Container[Endpoint]) -> bool:
        """Say whether an endpoint of the group is well that was not tried."""
        ...


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
    """The method in the caller's spelling."""

    target: StrOrURL
    """The URL in the caller's type."""

    arguments: Arguments
    """The :attr:`options` and the headers, for aiohttp; not to be changed.

    Containers and buffers are copies, because the caller could change them.
    """

    given: Arguments
    """The caller's own objects, for the first attempt; not to be changed."""

    route: Route | None = None
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
        """Say whether both requests have the same method, URL and headers."""
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
        return request_of(type(self), method, target, given, arguments, self._base_url)

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


def request_of(
    kind: type[_R],
    method: str,
    target: StrOrURL,
    given: Arguments,
    arguments: Arguments,
    base_url: URL | Service | None,
) -> _R:
    """Make a request of the given arguments and their copies."""
    # A method of the class would be bound to it each time.
    request = _new(kind)
    request.spelling = method
    request.target = target
    request.given = given
    request.arguments = arguments
    request._base_url = base_url
    request._url = None
    return request


def with_header(arguments: Arguments, name: str, value: str) -> Arguments:
    """Return the arguments of a request, whose header *name* has just this *value*."""
    headers = CIMultiDict(arguments.get("headers") or ())
    headers[name] = value
    return {**arguments, "headers": headers}


class RoutedRequest(HttpRequest):
    """A request that is bound to an endpoint, with all copies."""

    __slots__ = ("route",)

    route: Route | None
    """The endpoint of the request; None after a redirect to another server."""

    @classmethod
    def to(cls, route: Route | None, url: URL, request: HttpRequest) -> Self:
        """Return a copy of a request that goes to a server, with the URL there.

        Without a server, to whatever the URL names.
        """
        routed = cls.__new__(cls)
        routed.spelling = request.spelling
        routed.target = routed._url = url
        routed.given = request.given
        routed.arguments = request.arguments
        routed._base_url = None
        routed.route = route
        return routed

    def __repr__(self) -> str:
        return printable(f"<HttpRequest {self.described(DEFAULT_MASK)}>")

    def _copy(
        self, method: str, target: StrOrURL, given: Arguments, arguments: Arguments
    ) -> Self:
        copy = super()._copy(method, target, given, arguments)
        copy.route = self.route
        if target is not self.target:
            copy._retarget(self.url)
        return copy

    def _retarget(self, before: URL) -> None:
        """Detach the request from its endpoint if the origin of the URL has changed."""
        url = url_of(self.target)
        self.target = self.target if url is None else url
        if url is None or (url.absolute and origin_key(url) != origin_key(before)):
            self.route = None


class RpcRequest(NoContext):
    """The call of a function that :func:`rpc` decorates. Immutable by convention.

    To call the function with other arguments, pass on a changed copy: :meth:`replace`.
    No log keeps the arguments, and nothing shows them.

    Args:
        name: The name of the call.
        args: The arguments by position, with ``self`` of a method.
        kwargs: The arguments by name.

    Raises:
        ValueError: An argument is not as described.

    >>> request = RpcRequest("fetch_report", ("2026-11-22",), {"page": 1})
    >>> request.replace(kwargs={"page": 2})
    <RpcRequest fetch_report>
    """

    __slots__ = ("_without_arguments", "args", "kwargs", "name")

    name: str
    """The qualified name of the function, or what was given in its place."""

    args: tuple[Any, ...]
    """The arguments by position, with ``self`` of a method."""

    kwargs: dict[str, Any]
    """The arguments by name; not to be changed."""

    # Attributes that the log, limiters and rules need of any request.
    _base_url: ClassVar[None] = None
    method: ClassVar[None] = None
    route: ClassVar[None] = None
    target: ClassVar[None] = None
    url: ClassVar[None] = None

    def __init__(
        self,
        name: str,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        self.name = checked_name(name)
        given: object = args
        if isinstance(given, str | bytes) or not isinstance(given, Iterable):
            # One argument without its comma: a text would become one for each letter.
            raise bad_secret("args", args, "a tuple")
        if kwargs is not None and not isinstance(kwargs, Mapping):
            raise bad_secret("kwargs", kwargs, "a mapping of names, or None")
        self.args = tuple(args)
        self.kwargs = dict(kwargs or {})
        self._without_arguments: RpcRequest | None = None

    def called_with(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Self:
        """Return a copy of the request with the arguments of a call."""
        request = self.__class__.__new__(self.__class__)
        request.name = self.name
        request.args = args
        request.kwargs = kwargs
        request._without_arguments = self
        return request

    def replace(self, **changes: Any) -> Self:
        """Return a copy with *changes*.

        Args:
            changes: ``name``, ``args`` or ``kwargs``; the others stay.

        Raises:
            TypeError: There is no such argument.
            ValueError: An argument is not as described.
        """
        own = {"name": self.name, "args": self.args, "kwargs": self.kwargs}
        return type(self)(**{**own, **changes})

    def without_body(self) -> RpcRequest:
        """Return the request without its arguments, for a log to keep."""
        return self._without_arguments or RpcRequest(self.name)

    def looks_like(self, other: RpcRequest) -> bool:
        """Say whether both requests have the same name."""
        return self.name == other.name

    def described(self, mask: Mask) -> str:
        """Return the name, credentials hidden."""
        return mask.text(self.name)

    def full_url(self) -> None:
        """Return None: a function has no URL."""

    def merged_headers(self, defaults: object) -> None:
        """Return None: a function has no headers."""

    def __repr__(self) -> str:
        return printable(f"<{type(self).__name__} {self.name}>")
