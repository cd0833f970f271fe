"""Choose where one group alone does not: fall back, wait, or stay with one endpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias

from .._call.tries import tries_of
from .._errors import LimitedRequestError, bad_argument
from .._policies.queues import WaitQueue, unsent
from .._request.endpoint import Service, origin_key
from .discovery import WarnOnce
from .ejection import Trial

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Container, Mapping, MutableMapping, Sequence

    import aiohttp
    from aiohttp.typedefs import StrOrURL
    from yarl import URL

    from .._call.call import Call
    from .._context.context import ClientRequestContext
    from .._request.endpoint import Endpoint
    from .._request.request import HttpRequest
    from .roster import Roster, Waiting
    from .state import EndpointState

    Permit: TypeAlias = EndpointState | Trial
    Chosen: TypeAlias = "EndpointState | Trial | Choice"


class EndpointGroupError(LimitedRequestError):
    """There is no endpoint for the request; it was not sent.

    It may be sent again, whatever its method. No circuit breaker and no retry limiter
    counts it.

    Args:
        group: The name of the group.
        reason: What is wrong.
        endpoints: Each endpoint of the group, with why it cannot be chosen.
    """

    group: str
    """The name of the group."""

    reason: str
    """The reason for the error."""

    endpoints: Mapping[str, str]
    """Each endpoint of the group, with why it cannot be chosen."""

    def __init__(self, group: str, reason: str, endpoints: Mapping[str, str]) -> None:
        super().__init__(group, reason, endpoints)
        self.group = group
        self.reason = reason
        self.endpoints = endpoints

    def __str__(self) -> str:
        listed = ", ".join(f"{name} ({why})" for name, why in self.endpoints.items())
        return f"endpoint group {self.group!r}: {self.reason}{listed and ': '}{listed}"


class EmptyEndpointGroupError(EndpointGroupError):
    """The group has no endpoint that could be chosen, and none will come."""


class EndpointSelectionTimeoutError(EndpointGroupError):
    """No endpoint was available within the selection timeout."""


class Choice:
    """The way of a request to an endpoint, by a pin or by groups that follow another.

    Args:
        permit: What was chosen.
        service_key: The name of the service, for what is kept per service.
        rosters: What else might serve the request, in order of preference.
    """

    __slots__ = (
        "_rosters",
        "endpoint",
        "key",
        "middleware",
        "permit",
        "service_key",
        "state",
    )

    endpoint: Endpoint
    """The endpoint."""

    key: str
    """The name of its server, for what is kept per server."""

    service_key: str
    """The name of the service, for what is kept per service."""

    middleware: aiohttp.ClientMiddlewareType | None
    """Connects to the endpoint's address; None if its host name is resolved."""

    permit: Permit
    """What was chosen: an endpoint, or a trial of one."""

    state: EndpointState
    """What is known of the endpoint."""

    def __init__(
        self, permit: Permit, service_key: str, rosters: Sequence[Roster] = ()
    ) -> None:
        self.permit = permit
        self.state = state = permit.state
        self.endpoint, self.key = state.endpoint, state.key
        self.middleware = state.middleware
        self.service_key = service_key
        self._rosters = rosters

    @property
    def is_out(self) -> bool:
        """Whether the endpoint is left alone now."""
        return self.state.is_out

    def has_other(self, tried: Container[Endpoint]) -> bool:
        """Say whether a healthy untried endpoint exists, in the first healthy group."""
        return bool(self._untried(tried))

    def other_for(self, ctx: ClientRequestContext) -> EndpointState | None:
        """Return a healthy endpoint that the call has not tried, or None."""
        untried = self._untried({self.endpoint, *tries_of(ctx.call)})
        return untried[0].roster.choose(ctx, untried) if untried else None

    def to(self, state: EndpointState) -> Choice:
        """Return the route to a different endpoint."""
        return Choice(state, self.service_key, self._rosters)

    def _untried(self, tried: Container[Endpoint]) -> Sequence[EndpointState]:
        well: Sequence[EndpointState] = ()
        for roster in self._rosters:
            well = well or roster.healthy()
        return [each for each in well if each.endpoint not in tried]


def release_trial(chosen: Chosen) -> None:
    """Release the trial slot of a request that is not sent."""
    permit = chosen.permit if isinstance(chosen, Choice) else chosen
    if isinstance(permit, Trial):
        permit.stop()
        permit.give_up()


async def ready_in(roster: Roster, until: float) -> bool:
    """Wait for endpoints; say whether there are any by then."""
    roster.catch_up()
    while not roster.is_ready and roster.may_fill and roster.now() < until:
        await roster.wait(until)
    return roster.is_ready


async def choice_in(
    roster: Roster,
    name: str,
    ctx: ClientRequestContext,
    request: HttpRequest | None,
) -> EndpointState | Trial:
    """Choose an endpoint for a request once there is one.

    Args:
        roster: The endpoints.
        name: The name of the group.
        ctx: The call or the attempt.
        request: The request; None for one that is no trial.

    Raises:
        EndpointGroupError: There is none in time.
    """
    call = ctx.call
    loop = call.loop
    until = loop.time() + min(roster.patience, call.time_of(call))
    while roster.may_fill:
        await roster.wait(until)
        check_open(call)
        if loop.time() >= until:
            roster.serve_expired()
        chosen = roster.pick(ctx, request)
        if chosen is not None:
            return chosen
        if loop.time() >= until:
            raise too_late(name, roster.patience, roster)
    raise empty(name, roster)


def check_open(call: Call) -> None:
    """Refuse a request whose session was closed during the wait.

    Raises:
        RuntimeError: It was.
    """
    if call.session is not None and call.session.closed:
        raise RuntimeError("Session is closed")


def too_late(
    name: str, seconds: float, *rosters: Roster
) -> EndpointSelectionTimeoutError:
    """Make the error for a request that has found no endpoint in time.

    Args:
        name: The name of the group.
        seconds: How long a request waits.
        rosters: What it could have found.
    """
    failures = [each.last_failure for each in rosters if each.last_failure is not None]
    words = "; ".join(f"{type(each).__name__}: {each}" for each in failures)
    reason = f"no endpoint within {seconds:g} s{words and f' ({words})'}"
    return unsent(EndpointSelectionTimeoutError(name, reason, why_out(rosters)))


def empty(name: str, *rosters: Roster) -> EmptyEndpointGroupError:
    """Make the error for a request that no endpoint will ever come for."""
    return unsent(EmptyEndpointGroupError(name, "empty", why_out(rosters)))


def why_out(rosters: tuple[Roster, ...]) -> dict[str, str]:
    """Return each endpoint as text, with why it is not chosen."""
    found: dict[str, str] = {}
    for each in reversed(rosters):
        found = each.why_out() | found
    return found


class ChosenGroup(Protocol):
    """The group that the requests are for."""

    _service: Service

    @property
    def name(self) -> str:
        """The name of the group."""
        ...

    def _rosters(
        self, loop: AbstractEventLoop, request: HttpRequest | None = None
    ) -> tuple[Roster, ...]: ...

    async def _change(
        self, loop: AbstractEventLoop, rosters: tuple[Roster, ...], until: float
    ) -> None: ...


def choose_pinned(
    group: ChosenGroup, ctx: ClientRequestContext, request: HttpRequest, pin: Endpoint
) -> Choice | None:
    """Return the endpoint named by *pin*, even if it is ejected.

    None where there is no list yet. No other one takes its place, so retries go to it.

    Raises:
        EndpointGroupError: It has left.
        ValueError: It is none of the group's.
    """
    rosters = _rosters_of(group, ctx.call.loop, request)
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


async def wait_for_pinned(
    group: ChosenGroup, ctx: ClientRequestContext, request: HttpRequest, pin: Endpoint
) -> Choice:
    """Return the endpoint that was named once there is a list.

    Raises:
        EndpointGroupError: There was no list in time, or the endpoint has left.
        ValueError: It is none of the group's.
    """
    call = ctx.call
    loop, rosters = call.loop, _rosters_of(group, call.loop, request)
    patience = max(each.patience for each in rosters)
    until = loop.time() + min(patience, call.time_of(call))
    while True:
        chosen = choose_pinned(group, ctx, request, pin)
        if chosen is not None:
            return chosen
        if loop.time() >= until:
            raise too_late(group.name, patience, *rosters)
        await group._change(loop, rosters, until)
        check_open(call)


def _rosters_of(
    group: ChosenGroup, loop: AbstractEventLoop, request: HttpRequest
) -> tuple[Roster, ...]:
    return group._rosters(loop, request) or group._rosters(loop)


def _is_meant(pin: Endpoint, endpoint: Endpoint) -> bool:
    """Say whether an endpoint matches the pinned endpoint, by URL or address."""
    if pin == endpoint:
        return True
    if pin.address is not None or endpoint.address is None:
        return False
    scheme, host, port = origin_key(pin.url)
    there = origin_key(endpoint.url)
    return (scheme, host, port) == (there[0], endpoint.address, there[2])


class FallbackGroup(Protocol):
    """The requirements on the groups of ``or_else()``."""

    _service: Service

    @property
    def name(self) -> str:
        """The name of the group."""
        ...

    @property
    def placeholder(self) -> URL:
        """A base URL for sessions."""
        ...

    @property
    def _has_addresses(self) -> bool: ...

    def _parts(self) -> tuple[MutableMapping[Waiting, bool], ...]: ...

    def _rosters(
        self, loop: AbstractEventLoop, request: HttpRequest | None = None
    ) -> tuple[Roster, ...]: ...

    def _states(self) -> tuple[EndpointState, ...]: ...


class ServiceOfGroups(Service):
    """Finds the requests of two groups, under the name and the URLs of the first.

    Args:
        first: The service of the first.
        other: That of the other.
    """

    __slots__ = ("_services",)

    def __init__(self, first: Service, other: Service) -> None:
        super().__init__(first.key, first.beginning, _none)
        self._services = first, other

    def find(self, target: StrOrURL) -> URL | None:
        """Return the URL asked of the service; None for other servers."""
        first, other = self._services
        found = first.find(target)
        return other.find(target) if found is None else found


def _none() -> None:
    """Tell no origin: each of the groups has its own."""


class Fallback:
    """Groups in order of preference: the first with a healthy endpoint serves.

    A mixin of :class:`EndpointGroup`, in place of what that does for a list of its own.

    Args:
        first: The group that is preferred.
        other: The one that follows it.

    Raises:
        ValueError: Both have a group in common.
    """

    def __init__(self, first: FallbackGroup, other: FallbackGroup) -> None:
        self._members = first, other
        parts = self._parts()
        if len({*map(id, parts)}) < len(parts):
            expected = "a group that has none in common with this one"
            raise bad_argument("other", other, expected)
        self._name = f"{first.name}, else {other.name}"
        self._service: Service = ServiceOfGroups(first._service, other._service)
        self._warn = WarnOnce()
        self._queue: tuple[object, WaitQueue[bool]] = None, WaitQueue()
        for number, above in enumerate(parts):
            above[self] = number < len(parts) - 1

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
        return False

    def _parts(self) -> tuple[MutableMapping[Waiting, bool], ...]:
        first, other = self._members
        return (*first._parts(), *other._parts())

    def _rosters(
        self, loop: AbstractEventLoop, request: HttpRequest | None = None
    ) -> tuple[Roster, ...]:
        first, other = self._members
        return (*first._rosters(loop, request), *other._rosters(loop, request))

    def _states(self) -> tuple[EndpointState, ...]:
        first, other = self._members
        known = {each.endpoint: each for each in (*other._states(), *first._states())}
        listed = (each.endpoint for each in (*first._states(), *other._states()))
        return tuple(known[endpoint] for endpoint in dict.fromkeys(listed))

    def _pick(
        self, ctx: ClientRequestContext, request: HttpRequest | None
    ) -> Choice | None:
        # A URL that a decorator has taken for one of the service names none of them.
        loop = ctx.call.loop
        rosters = self._rosters(loop, request) or self._rosters(loop)
        for roster in rosters:
            permit = roster.pick(ctx, request, is_followed=True)
            if permit is None and roster.awaited_until is not None:
                return None
            if permit is None:
                roster.serve_expired()
                permit = roster.pick(ctx, request, is_followed=True)
            if permit is not None:
                return Choice(permit, self._service.key, rosters)
        # All are out, so all of the first that has any are in use.
        for roster in rosters:
            permit = roster.pick(ctx, request)
            if permit is not None:
                return Choice(permit, self._service.key, rosters)
        return None

    async def _wait(
        self, ctx: ClientRequestContext, request: HttpRequest | None
    ) -> Choice:
        """Wait until a group has an endpoint, then choose it.

        Raises:
            EndpointGroupError: There is none in time.
        """
        call = ctx.call
        loop = call.loop
        rosters = self._rosters(loop, request) or self._rosters(loop)
        patience = max(each.patience for each in rosters)
        ends = loop.time() + call.time_of(call)
        until = min(loop.time() + patience, ends)
        while any(each.may_fill for each in rosters):
            await self._change(loop, rosters, until if loop.time() < until else ends)
            check_open(call)
            chosen = self._pick(ctx, request)
            if chosen is not None:
                return chosen
            now = loop.time()
            is_awaited = any(each.awaited_until is not None for each in rosters)
            if now >= ends or (now >= until and not is_awaited):
                raise too_late(self._name, patience, *rosters)
        raise empty(self._name, *rosters)

    async def _is_ready(self, loop: AbstractEventLoop, until: float) -> bool:
        rosters = self._rosters(loop)
        while not (is_ready := _are_ready(rosters)) and loop.time() < until:
            await self._change(loop, rosters, until)
        return is_ready

    async def _change(
        self, loop: AbstractEventLoop, rosters: tuple[Roster, ...], until: float
    ) -> None:
        """Wait for a change in a roster, or until a list has to be refreshed.

        Later ones are not asked for theirs while one is awaited.
        """
        for roster in rosters:
            awaited_until = roster.awaited_until
            until = min(until, roster.asks_at, awaited_until or until)
            if awaited_until is not None:
                break
        known, queue = self._queue
        if known is not loop:
            queue = WaitQueue()
            self._queue = loop, queue
        await queue.wait(until, lambda _: None)

    def wake(self) -> None:
        """Wake the calls that wait for an endpoint."""
        _, queue = self._queue
        while queue.serve(lambda: True):
            pass


def _are_ready(rosters: tuple[Roster, ...]) -> bool:
    """Say whether a request would find an endpoint, or had to wait for one."""
    for roster in rosters:
        roster.catch_up()
        if roster.healthy():
            return True
        if roster.awaited_until is not None:
            return False
    return any(each.is_ready for each in rosters)
