"""Endpoint groups: interchangeable servers, called like a single server."""

from __future__ import annotations

import math
from asyncio import AbstractEventLoop, get_running_loop
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypedDict, Unpack
from weakref import WeakKeyDictionary

from yarl import URL

from .. import _checks as check
from .._call.closing import unless_closed
from .._context.context import ClientRequestContext
from .._errors import bad_argument, checked_name, is_plain_function
from .._policies.listeners import Listeners, check_plain
from .._policies.queues import WaitQueue
from .._request.endpoint import Endpoint, Service
from .._values import Shared
from .discovery import WarnOnce
from .roster import EndpointSelectionTimeoutError, Roster, empty, too_late
from .selection import EndpointSelectionStrategy
from .sources import DnsLookup, Family, GivenSource, Resolver, Scheme, Source, SrvLookup
from .state import EndpointGroupListener, EndpointState, OutlierDetection

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from aiohttp.typedefs import StrOrURL

    from .._request.request import HttpRequest
    from .ejection import Choice


_USUAL_SELECTION: Final = EndpointSelectionStrategy.peak_ewma()
_USUAL_DETECTION: Final = OutlierDetection()


class Settings(TypedDict, total=False):
    """The settings of a group as arguments, for type checkers."""

    selection: EndpointSelectionStrategy
    outlier_detection: OutlierDetection | None
    name: str | None
    listener: EndpointGroupListener | None
    selection_timeout: float


class EndpointGroup(Shared):
    """A group of interchangeable servers, called like a single server.

    Made by :meth:`of`, :meth:`dns` or :meth:`srv`. Give it to a :class:`SessionBuilder`
    in place of the base URL; each request, and each attempt, then goes to one of them.
    One group may serve any number of sessions, which share what it knows, in one event
    loop at a time. A copy is the same object. After Armeria's ``EndpointGroup``.

    >>> group = EndpointGroup.of("https://eu.example.com", "https://us.example.com/v1/")
    >>> builder = SessionBuilder(group)
    """

    def __init__(
        self,
        source: Source,
        *,
        selection: EndpointSelectionStrategy = _USUAL_SELECTION,
        outlier_detection: OutlierDetection | None = _USUAL_DETECTION,
        name: str | None = None,
        listener: EndpointGroupListener | None = None,
        selection_timeout: float = 3.2,
    ) -> None:
        if not hasattr(source, "usual_name"):
            expected = "EndpointGroup.of(*urls), .dns(url) or .srv(name) makes a group"
            raise bad_argument("source", source, expected)
        check.kind("selection", selection, EndpointSelectionStrategy)
        if not is_plain_function(selection.select):
            raise bad_argument("selection", selection, "with a plain select()")
        detection = outlier_detection
        check.kind("outlier_detection", detection, OutlierDetection, or_none=True)
        check.kind("listener", listener, EndpointGroupListener, or_none=True)
        if listener is not None:
            check_plain("listener", listener, EndpointGroupListener)
        check.positive("selection_timeout", selection_timeout)
        name = source.usual_name if name is None else name
        name = checked_name(name, "endpoint-group")
        self._source = source
        self._selection, self._detection = selection, detection
        self._patience = selection_timeout
        self._roster: Roster | None = None
        # Those of which it is a part, and whether others follow it there.
        self._parents: WeakKeyDictionary[EndpointGroup, bool] = WeakKeyDictionary()
        key = source.service_key or name
        self._begin(name, Service(key, self._url, source.origin))
        self._listeners = Listeners(
            f"endpoint group {self._name!r}",
            () if listener is None else (listener,),
            EndpointGroupListener,
        )

    def _begin(self, name: str, service: Service) -> None:
        """Set what a group has, with a list of its own or not."""
        self._name, self._service = name, service
        self._warn = WarnOnce()
        self._queue: tuple[object, WaitQueue[bool]] = None, WaitQueue()
        leaves = self._leaves()
        for number, leaf in enumerate(leaves, 1):
            leaf._parents[self] = number < len(leaves)

    @staticmethod
    def of(
        *endpoints: StrOrURL | Endpoint, **settings: Unpack[Settings]
    ) -> EndpointGroup:
        """Make a group of servers that are known, and stay the same.

        A relative URL is joined to that of an endpoint, after its path. An absolute URL
        goes where it says, and counts for no endpoint; unless all endpoints have one
        origin, such as a name with several addresses, and it has that too.

        Args:
            endpoints: URLs, or :class:`Endpoint` objects; at least one. Equal ones are
                one.
            settings: ``selection``, an :class:`EndpointSelectionStrategy` that chooses
                an endpoint for each request, ``peak_ewma()`` by default;
                ``outlier_detection``, an :class:`OutlierDetection` that says which
                endpoints are ejected, None for none; ``name``, its name in logs,
                metrics and keys, by default made of the origins; ``listener``, an
                :class:`EndpointGroupListener`; ``selection_timeout``, the seconds that
                a request waits for an endpoint, > 0, by default 3.2.

        Raises:
            ValueError: An argument is not as described.

        >>> EndpointGroup.of("http://a.example", "http://b.example").name
        'http://a.example, http://b.example'
        """
        if not endpoints:
            raise bad_argument("endpoints", endpoints, "at least one")
        source = GivenSource("EndpointGroup.of", may_fill=False)
        source.give(endpoints)
        source.usual_name = source.name()
        return EndpointGroup(source, **settings)

    @staticmethod
    def dns(
        url: StrOrURL,
        *,
        refresh: tuple[float, float] = (1.0, 60.0),
        family: Family = "prefer_ipv4",
        resolver: Resolver | None = None,
        **settings: Unpack[Settings],
    ) -> EndpointGroup:
        """Make a group of the addresses that a name stands for, as of now.

        The name is looked up again when the group is used: every 10 s, as the system
        does (``/etc/hosts`` and search lists count), or when a *resolver* says so. What
        is sent, checked and shown goes by the name; only connections go to addresses.
        URLs that are relative, or of this origin, are balanced.

        Args:
            url: The beginning of all URLs, with the name.
            refresh: The least and the most seconds for which an answer holds.
            family: ``"prefer_ipv4"`` takes IPv6 while no IPv4 address can be connected
                to, or there is none, and both where neither can; ``"ipv4"`` and
                ``"ipv6"`` take one kind alone, ``"any"`` takes both.
            resolver: An async function ``(host, port) -> [(address, ttl)]`` that is
                asked in place of the system; ttl in seconds.
            settings: As for :meth:`of`; the ``name`` is the origin by default.

        Raises:
            ValueError: An argument is not as described.

        >>> EndpointGroup.dns("http://orders.default.svc.cluster.local:8080").name
        'http://orders.default.svc.cluster.local:8080'
        """
        source = DnsLookup(url, family=family, resolver=resolver, refresh=refresh)
        return EndpointGroup(source, **settings)

    @staticmethod
    def srv(
        name: str,
        /,
        *,
        scheme: Scheme = "http",
        refresh: tuple[float, float] = (1.0, 60.0),
        allowed_domains: Sequence[str] = (),
        **settings: Unpack[Settings],
    ) -> EndpointGroup:
        """Make a group of the servers that the SRV records of a name list.

        Priorities and weights are obeyed: a server of a higher priority number serves
        while none of a lower one is well. Needs the extra ``dns``.

        Args:
            name: The name of the records, such as ``_http._tcp.orders.example.com``.
            scheme: ``"http"`` or ``"https"``. With the latter, servers outside the
                domain of the service are left out, since DNS is not to choose who gets
                the credentials.
            refresh: The least and the most seconds for which an answer holds.
            allowed_domains: Domains that servers may be in with ``"https"``, too.
            settings: As for :meth:`of`; the ``name`` is that of the records by default.

        Raises:
            ValueError: An argument is not as described.
            ImportError: The extra ``dns`` is not installed.
        """
        source = SrvLookup(
            name, scheme=scheme, allowed_domains=allowed_domains, refresh=refresh
        )
        return EndpointGroup(source, **settings)

    @property
    def name(self) -> str:
        """The name of the group in logs, metrics and keys."""
        return self._name

    @property
    def placeholder(self) -> URL:
        """A base URL for sessions, which lets credentials go to no other origin.

        One that no server has, where today's endpoints may be others tomorrow.
        """
        may_change = self._source.may_fill and self._source.service_key is None
        url = None if may_change else self._source.url()
        return url or URL("https://endpoints.invalid/")

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """The current endpoints of the group, including ejected endpoints."""
        return tuple(each.endpoint for each in self._states())

    @property
    def states(self) -> Mapping[Endpoint, EndpointState]:
        """The load, the latency and the health of each endpoint; read-only."""
        return MappingProxyType({each.endpoint: each for each in self._states()})

    def select_now(self, ctx: ClientRequestContext) -> Endpoint | None:
        """Choose an endpoint without waiting; None if there is none.

        It does not count as under way there.
        """
        check.kind("ctx", ctx, ClientRequestContext)
        chosen = self._pick(ctx, None)
        return None if chosen is None else chosen.endpoint

    async def select(self, ctx: ClientRequestContext) -> Endpoint:
        """Choose an endpoint, after a wait where there is none.

        Raises:
            EndpointGroupError: There was none in time.
        """
        check.kind("ctx", ctx, ClientRequestContext)
        chosen = self._pick(ctx, None) or await self._wait(ctx, None)
        return chosen.endpoint

    async def when_ready(
        self,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> tuple[Endpoint, ...]:
        """Return the endpoints once there are any.

        Args:
            timeout: Seconds to wait, > 0; None for no limit.

        Raises:
            EndpointGroupError: There were none in time.
            ValueError: *timeout* is not as described.
        """
        if timeout is not None:
            check.positive("timeout", timeout)
        loop = get_running_loop()
        until = math.inf if timeout is None else loop.time() + timeout
        while not _are_ready(self._rosters(loop)):
            if loop.time() >= until:
                reason = "no endpoint in time"
                raise EndpointSelectionTimeoutError(self._name, reason, {})
            await self._change(self._rosters(loop), until)
        return self.endpoints

    def or_else(self, other: EndpointGroup) -> EndpointGroup:
        """Return a group of both, where the other serves while none of this is well.

        That is while there is none, or all are out, for which the other does not have
        to be well. It hands back as soon as one of this group is well. An absolute URL
        goes to the group whose service it names, alone. What is kept per service is
        kept by the name of this one, which relative URLs are shown with.

        Args:
            other: The other group; it may have another one to follow it.

        Raises:
            ValueError: *other* is no group, or one of which this is a part, or the
                other way round.

        >>> near = EndpointGroup.of("https://eu.example.com", "https://eu2.example.com")
        >>> group = near.or_else(EndpointGroup.of("https://us.example.com"))
        >>> len(group.endpoints)
        3
        """
        check.kind("other", other, EndpointGroup)
        name = f"{self._name}, else {other._name}"
        service = _ServiceOfGroups(self._service, other._service)
        return GroupOfGroups((self, other), name, service)

    def describe(self) -> str:
        """Return one line for ``SessionBuilder.describe()``: name and settings."""
        return repr(self)

    def __repr__(self) -> str:
        settings = (
            f"selection={self._selection!r}, outlier_detection={self._detection!r}"
        )
        return f"{self._source!r}, {settings})"

    def _url(self) -> URL | None:
        """Return the beginning of the URLs of the service, if known."""
        url = self._source.url()
        if url is None and self._roster is not None and self._roster.states:
            return self._roster.states[0].endpoint.url
        return url

    def _states(self) -> tuple[EndpointState, ...]:
        roster = self._roster
        if roster is None:
            # To look at it begins nothing.
            roster = Roster(self)
            self._source.fill(roster)
        return roster.states

    def _leaves(self) -> tuple[EndpointGroup, ...]:
        """Return the groups with lists of their own, in order of preference."""
        return (self,)

    def _rosters(
        self, loop: AbstractEventLoop, request: HttpRequest | None = None
    ) -> tuple[Roster, ...]:
        """Return the rosters that may serve a request, in order of preference."""
        if request is not None and self._service.find(request.target) is None:
            return ()
        return (self._roster_in(loop),)

    def _serving(
        self, ctx: ClientRequestContext, request: HttpRequest | None
    ) -> tuple[Roster, ...]:
        """Return the rosters that serve a request, in order of preference."""
        loop = ctx.call.loop
        # A URL that a decorator has taken for one of the service may name none.
        return self._rosters(loop, request) or self._rosters(loop)

    def _roster_in(self, loop: AbstractEventLoop) -> Roster:
        """Return the roster in a loop; in another one than before all starts afresh."""
        roster = self._roster
        if roster is None or roster.loop is not loop:
            if roster is not None and roster.discovery is not None:
                roster.discovery.reset()
            self._roster = roster = Roster(self, loop)
            # Its listeners may use the group.
            self._source.fill(roster)
        return roster

    def _pick(
        self, ctx: ClientRequestContext, request: HttpRequest | None
    ) -> Choice | None:
        """Choose an endpoint for a request; None where there is none."""
        roster, loop = self._roster, ctx.call.loop
        if roster is None or roster.loop is not loop:
            roster = self._roster_in(loop)
        return roster.pick(ctx, request, self._service.key, (roster,))

    async def _wait(
        self,
        ctx: ClientRequestContext,
        request: HttpRequest | None,
        choose: Callable[[], Choice | None] | None = None,
    ) -> Choice:
        """Wait until the group has an endpoint, then choose it.

        Args:
            ctx: The call or the attempt.
            request: The request; None for one that is no trial.
            choose: Looks for the endpoint; None for the choice of the group.

        Raises:
            EndpointGroupError: There is none in time.
        """
        choose = choose or partial(self._pick, ctx, request)
        call, rosters = ctx.call, self._serving(ctx, request)
        loop = call.loop
        patience = max(each.patience for each in rosters)
        ends = loop.time() + call.time_of(call)
        until = min(loop.time() + patience, ends)
        while any(each.may_fill for each in rosters):
            longest = until if loop.time() < until else ends
            await unless_closed(call, partial(self._change, rosters, longest))
            chosen = choose()
            if chosen is not None:
                return chosen
            now = loop.time()
            is_awaited = any(each.awaited_until is not None for each in rosters)
            if now >= ends or (now >= until and not is_awaited):
                raise too_late(self._name, patience, rosters)
        raise empty(self._name, rosters)

    async def _change(self, rosters: tuple[Roster, ...], until: float) -> None:
        """Wait for a change in a roster, or until a list has to be refreshed.

        Later ones are not asked for theirs while one is awaited.
        """
        for roster in rosters:
            awaited_until = roster.awaited_until
            until = min(until, roster.asks_at, awaited_until or until)
            if awaited_until is not None:
                break
        loop, (known, queue) = get_running_loop(), self._queue
        if known is not loop:
            queue = WaitQueue()
            self._queue = loop, queue
        await queue.wait(until, lambda _: None)

    def wake(self) -> None:
        """Wake the calls that wait for an endpoint."""
        _, queue = self._queue
        while queue.serve(lambda: True):
            pass

    @property
    def _has_addresses(self) -> bool:
        """Whether connections go to addresses, of one endpoint at least."""
        return self._source.has_addresses

    @property
    def _has_one_name(self) -> bool:
        """Whether all endpoints share an origin, so that a proxy can choose."""
        return self._source.origin() is not None

    def _warn_of_proxy(self) -> None:
        """Warn once that a proxy resolves the addresses, so no endpoint is chosen."""
        self._warn(
            f"endpoint group {self._name!r}: requests go through a proxy, which"
            " resolves the host name itself: no load balancing"
        )


class GroupOfGroups(EndpointGroup):
    """Groups in order of preference: the first with a healthy endpoint serves.

    Args:
        members: The groups.
        name: The name of the group.
        service: Finds the requests of all of them.

    Raises:
        ValueError: Two of them have a group in common.
    """

    def __init__(
        self, members: tuple[EndpointGroup, ...], name: str, service: Service
    ) -> None:
        self._members = members
        if len({*map(id, self._leaves())}) < len(self._leaves()):
            expected = "a group that has none in common with this one"
            raise bad_argument("other", members[-1], expected)
        self._begin(name, service)

    def __repr__(self) -> str:
        first, other = self._members
        return f"{first!r}.or_else({other!r})"

    @property
    def placeholder(self) -> URL:
        """A base URL for sessions, which lets credentials go to no other origin."""
        return self._members[0].placeholder

    @property
    def _has_addresses(self) -> bool:
        return any(each._has_addresses for each in self._members)

    @property
    def _has_one_name(self) -> bool:
        return len(self._members) == 1 and self._members[0]._has_one_name

    def _states(self) -> tuple[EndpointState, ...]:
        known: dict[Endpoint, EndpointState] = {}
        for leaf in self._leaves():
            for each in leaf._states():
                known.setdefault(each.endpoint, each)
        return (*known.values(),)

    def _leaves(self) -> tuple[EndpointGroup, ...]:
        return tuple(leaf for each in self._members for leaf in each._leaves())

    def _rosters(
        self, loop: AbstractEventLoop, request: HttpRequest | None = None
    ) -> tuple[Roster, ...]:
        found = (each._rosters(loop, request) for each in self._members)
        return tuple(roster for rosters in found for roster in rosters)

    def _pick(
        self, ctx: ClientRequestContext, request: HttpRequest | None
    ) -> Choice | None:
        rosters, key = self._serving(ctx, request), self._service.key
        # Where all are out, all of the first that has any are in use.
        for is_followed in (True, False):
            for roster in rosters:
                chosen = roster.pick(
                    ctx, request, key, rosters, is_followed=is_followed
                )
                if chosen is not None:
                    return chosen
                if is_followed and roster.awaited_until is not None:
                    return None
        return None


class _ServiceOfGroups(Service):
    """Finds the requests of two groups, under the name and the URLs of the first.

    Args:
        first: The service of the first.
        other: That of the other.
    """

    __slots__ = ("_services",)

    def __init__(self, first: Service, other: Service) -> None:
        # Each of them has an origin of its own.
        super().__init__(first.key, first.beginning, lambda: None)
        self._services = first, other

    def find(self, target: StrOrURL) -> URL | None:
        """Return the URL asked of the service; None for other servers."""
        first, other = self._services
        found = first.find(target)
        return other.find(target) if found is None else found


def _are_ready(rosters: tuple[Roster, ...]) -> bool:
    """Say whether a request finds an endpoint now, without a wait for a list."""
    for roster in rosters:
        roster.catch_up()
        if roster.healthy():
            return True
        if roster.awaited_until is not None:
            return False
    return any(each.is_ready for each in rosters)


def listen(group: EndpointGroup, listener: EndpointGroupListener) -> None:
    """Add a listener to a group and its parts, unless already added."""
    for leaf in group._leaves():
        leaf._listeners.add(listener)


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
        super().__init__(source, **settings)

    def set_endpoints(self, endpoints: Iterable[StrOrURL | Endpoint]) -> None:
        """Replace the endpoints; the state of kept endpoints is preserved.

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
