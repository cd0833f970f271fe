"""Let one group serve while none of another one is well."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from .._errors import bad_argument
from .._request.endpoint import Service
from .._waiting.wait_queue import WaitQueue
from .choice import Choice
from .waiting import check_open, empty, too_late
from .warn_once import WarnOnce

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import MutableMapping

    from aiohttp.typedefs import StrOrURL
    from yarl import URL

    from .._context.context import ClientRequestContext
    from .._request.request import HttpRequest
    from .roster import Roster, Waiting
    from .state import EndpointState


class Member(Protocol):
    """A group as a member of a fallback group, which has several in order."""

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
        """Return what one of the servers is asked for; None if none of them is."""
        first, other = self._services
        found = first.find(target)
        return other.find(target) if found is None else found


def _none() -> None:
    """Tell no origin: each of the groups has its own."""


class Fallback:
    """Several groups, of which one serves while none before it has any that is well.

    A mixin of :class:`EndpointGroup`, in place of what that does for a list of its own.

    Args:
        first: The group that is preferred.
        other: The one that follows it.

    Raises:
        ValueError: Both have a group in common.
    """

    def __init__(self, first: Member, other: Member) -> None:
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
        """Choose an endpoint once there is one.

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
        """Wait until there may be something to choose from, or a list is to be asked.

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
        if roster.well_now():
            return True
        if roster.awaited_until is not None:
            return False
    return any(each.is_ready for each in rosters)
