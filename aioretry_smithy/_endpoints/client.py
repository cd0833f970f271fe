"""Balance the requests of a session between the endpoints of a group."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final
from urllib.request import getproxies, proxy_bypass

from .. import _checks as check
from .._call.recorder import begin_after_wait, record_failure
from .._context.chain import check_inside
from .._context.client import DecoratingClient, Decorator, HttpClient
from .._context.recording import close_result
from .._errors import bad_argument
from .._request.endpoint import ServiceBehind, endpoint_of, origin_key
from .._request.request import HttpRequest, RoutedRequest
from .ejection import Choice
from .group import EndpointGroup
from .roster import EndpointGroupError, why_out
from .visit import Visit

if TYPE_CHECKING:
    import aiohttp
    from aiohttp.typedefs import StrOrURL
    from yarl import URL

    from .._call.call import Call
    from .._context.context import ClientRequestContext
    from .._request.endpoint import Endpoint, Service


# aiohttp cannot use these.
_UNUSABLE: Final = ("https:", "wss:")


def goes_through_proxy(
    call: Call, request: HttpRequest, service: Service, asked: URL
) -> bool:
    """Say whether aiohttp will send a request for something *asked* through a proxy."""
    if request.arguments.get("proxy") is not None:
        return True
    session = call.session
    return session is not None and (
        session._default_proxy is not None
        or (session.trust_env and _has_proxy(service.whole(asked)))
    )


def _has_proxy(url: URL) -> bool:
    """Say whether the environment names a proxy for a URL, as aiohttp goes by it."""
    proxy = getproxies().get(url.scheme, "")
    return bool(proxy) and not (
        proxy.lower().startswith(_UNUSABLE) or proxy_bypass(url.host or "")
    )


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
        check.kind("group", group, EndpointGroup)
        url = None if service is None else endpoint_of("service", service).url

        def decorator(delegate: HttpClient) -> LoadBalancingClient:
            # All that is sent would go to one endpoint, which would learn nothing.
            check_inside(cls.__name__, delegate)
            return cls(delegate, group, url)

        return decorator

    async def execute(
        self, ctx: ClientRequestContext, request: HttpRequest
    ) -> aiohttp.ClientResponse:
        """Choose an endpoint, send the request there, and learn from the outcome."""
        try:
            visit, request = await self._begin(ctx, request)
        except BaseException as cause:
            record_failure(ctx, cause)
            raise
        if visit is None:
            return await self.delegate.execute(ctx, request)
        try:
            response = await self.delegate.execute(ctx, request)
        except Exception as cause:
            await visit.end(ctx, None, cause)
            raise
        except BaseException as cause:
            visit.break_off(ctx, cause)
            raise
        try:
            await visit.end(ctx, response, None)
        except BaseException:
            close_result(ctx, response)
            raise
        return response

    async def _begin(
        self, ctx: ClientRequestContext, request: HttpRequest
    ) -> tuple[Visit | None, HttpRequest]:
        """Begin to visit an endpoint, if one is to be chosen; return what to send."""
        asked = self._service.find(request.target)
        if asked is None or request.route is not None:
            return None, request
        if self._is_left_to_proxy(ctx, request, asked):
            routed = RoutedRequest.to(None, self._service.whole(asked), request)
            ctx.record.routed_request = routed.without_body()
            return None, routed
        chosen = self._choose(ctx, request)
        if chosen is None:
            chosen = await self._wait(ctx, request)
            asked = self._service.find(request.target)
            if asked is None:
                # The endpoints are others by now, and have no origin that it names.
                chosen.release_trial()
                return None, request
        visit = Visit(chosen, asked)
        return visit, visit.begin(ctx, request)

    def _is_left_to_proxy(
        self, ctx: ClientRequestContext, request: HttpRequest, asked: URL
    ) -> bool:
        """Say whether a proxy resolves the address, so no endpoint is chosen."""
        group, service = self._group, self._service
        if not group._has_addresses:
            return False
        if not goes_through_proxy(ctx.call, request, service, asked):
            return False
        group._warn_of_proxy()
        # The names may be several, from which one is chosen all the same.
        return group._has_one_name

    def _choose(self, ctx: ClientRequestContext, request: HttpRequest) -> Choice | None:
        """Choose an endpoint; None if none is known yet."""
        options = ctx.call.options
        if options is not None and options.endpoint is not None:
            return _choose_pinned(self._group, ctx, request, options.endpoint)
        return self._group._pick(ctx, request)

    async def _wait(self, ctx: ClientRequestContext, request: HttpRequest) -> Choice:
        """Wait until the group has an endpoint, then choose it."""
        call, choose = ctx.call, partial(self._choose, ctx, request)
        started = call.loop.time()
        chosen = await self._group._wait(ctx, request, choose)
        begin_after_wait(call, ctx.record, call.loop.time() - started, "endpoint")
        return chosen

    @property
    def group(self) -> EndpointGroup:
        """The group whose endpoints get the requests."""
        return self._group

    @property
    def service(self) -> Service:
        """The service of the group, by which to recognize its requests."""
        return self._service

    def describe(self) -> str:
        """Return the name and the settings of this client."""
        service = "" if self._url is None else f", service={str(self._url)!r}"
        return f"{type(self).__name__}({self._group.describe()}{service})"


def _choose_pinned(
    group: EndpointGroup, ctx: ClientRequestContext, request: HttpRequest, pin: Endpoint
) -> Choice | None:
    """Return the endpoint named by *pin*, even if it is ejected.

    None where there is no list yet. No other one takes its place, so retries go to it.

    Raises:
        EndpointGroupError: It has left.
        ValueError: It is none of the group's.
    """
    rosters = group._serving(ctx, request)
    for roster in rosters:
        if roster.now() >= roster.due_at:
            roster.catch_up()
        for state in roster.states:
            if _is_meant(pin, state.endpoint):
                return Choice(state, group._service.key)
    if any(each.awaits_list for each in rosters):
        return None
    if any(_is_meant(pin, left) for each in rosters for left in each.left):
        reason = f"request_options(endpoint={str(pin)!r}), which has left"
        raise EndpointGroupError(group.name, reason, why_out(rosters))
    names = ", ".join(str(each.endpoint) for one in rosters for each in one.states)
    expected = f"an endpoint of the group {group.name!r}: {names or 'it has none'}"
    raise bad_argument("endpoint", pin, expected)


def _is_meant(pin: Endpoint, endpoint: Endpoint) -> bool:
    """Say whether an endpoint matches the pinned endpoint, by URL or address."""
    if pin == endpoint:
        return True
    if pin.address is not None or endpoint.address is None:
        return False
    scheme, host, port = origin_key(pin.url)
    there = origin_key(endpoint.url)
    return (scheme, host, port) == (there[0], endpoint.address, there[2])
