"""Take several servers that do the same for one thing to call."""

from __future__ import annotations

import weakref
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Unpack

from yarl import URL

from .._context.context import state_of
from .._errors import checked_name
from .._failures.safety import mark_queued
from .._listeners import Listeners
from .._request.service import Service
from .errors import EmptyEndpointGroupError
from .listener import EndpointGroupListener
from .roster import Roster
from .settings import GroupSettings
from .sources import StaticSource

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable, Mapping

    from aiohttp.typedefs import StrOrURL

    from .._call.call import Call
    from .._call.hooks import Scope
    from .._context.context import ClientRequestContext
    from .._request.endpoint import Endpoint
    from .._request.request import HttpRequest
    from .settings import Settings
    from .sources import Source
    from .state import EndpointState, Event
    from .trial import Trial

    Chosen = EndpointState | Trial


class EndpointGroup:
    """Several servers that do the same, as one thing to call.

    Made by :meth:`of`. Give it to a :class:`SessionBuilder` in place of the base URL;
    each request, and each attempt, then goes to one of them. One group may serve any
    number of sessions, which share what it knows, in one event loop at a time. After
    Armeria's ``EndpointGroup``.

    >>> group = EndpointGroup.of("https://eu.example.com", "https://us.example.com/v1/")
    >>> builder = SessionBuilder(group)
    """

    def __init__(self, source: Source, settings: GroupSettings) -> None:
        name = settings.name
        self._name = source.usual_name if name is None else checked_name(name)
        self._source = source
        self._settings = settings
        self._roster: Roster | None = None
        self._service = Service(self._name, self._url, source.origin)
        self._listeners = Listeners(
            f"endpoint group {self._name!r}",
            () if settings.listener is None else (settings.listener,),
            EndpointGroupListener,
        )

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
                an endpoint for each request, :meth:`~.round_robin` by default;
                ``name``, its name in logs, metrics and keys, by default made of the
                origins; ``listener``, an :class:`EndpointGroupListener`;
                ``selection_timeout``, the seconds that a request waits for an
                endpoint, > 0, by default 3.2.

        Raises:
            ValueError: An argument is not as described.

        >>> EndpointGroup.of("http://a.example", "http://b.example").name
        'http://a.example, http://b.example'
        """
        return EndpointGroup(StaticSource(endpoints), GroupSettings(**settings))

    @property
    def name(self) -> str:
        """The name of the group in logs, metrics and keys."""
        return self._name

    @property
    def placeholder(self) -> URL:
        """A base URL for sessions, which lets credentials go to no other origin."""
        return self._url() or URL("https://endpoints.invalid/")

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """The endpoints that it has now, those too that are out."""
        return tuple(each.endpoint for each in self._states())

    @property
    def states(self) -> Mapping[Endpoint, EndpointState]:
        """What is known of each endpoint now; to be read."""
        return MappingProxyType({each.endpoint: each for each in self._states()})

    def select_now(self, ctx: ClientRequestContext) -> Endpoint | None:
        """Choose an endpoint as for a request; None where there is none.

        It does not count as under way there.
        """
        chosen = self._pick(*state_of(ctx), None)
        return None if chosen is None else chosen.state.endpoint

    async def select(self, ctx: ClientRequestContext) -> Endpoint:
        """Choose an endpoint, after a wait where there is none.

        Raises:
            EndpointGroupError: There was none in time.
        """
        call, scope = state_of(ctx)
        chosen = self._pick(call, scope, None)
        chosen = chosen or await self._wait(call, scope, None)
        return chosen.state.endpoint

    def describe(self) -> str:
        """Return one line for ``SessionBuilder.describe()``: name and settings."""
        return repr(self)

    def __repr__(self) -> str:
        return f"EndpointGroup.{self._source!r}, {self._settings})"

    def _url(self) -> URL | None:
        """Return how the URLs of the service begin, as far as that is known."""
        url = self._source.url()
        if url is None and self._roster is not None and self._roster.states:
            return self._roster.states[0].endpoint.url
        return url

    def _states(self) -> tuple[EndpointState, ...]:
        roster = self._roster
        if roster is None:
            # To look at it begins nothing.
            roster = Roster(self._service, self._settings, _tell_nobody)
            self._source.list_known(roster)
        return roster.states

    def _of(self, loop: AbstractEventLoop) -> Roster:
        """Return the roster in a loop; in another one than before all starts afresh."""
        roster = self._roster
        if roster is None or roster.loop is not loop:
            tell = partial(_tell, weakref.ref(self))
            self._roster = roster = Roster(self._service, self._settings, tell, loop)
            self._source.list_known(roster)
        return roster

    def _pick(
        self, call: Call, scope: Scope, request: HttpRequest | None
    ) -> Chosen | None:
        """Choose an endpoint for a request; None where there is none."""
        roster = self._roster
        if roster is None or roster.loop is not call.loop:
            roster = self._of(call.loop)
        return roster.pick(call, scope, request)

    async def _wait(
        self, call: Call, scope: Scope, request: HttpRequest | None
    ) -> Chosen:
        """Choose an endpoint once there is one.

        Raises:
            EndpointGroupError: There is none in time.
        """
        reasons = self._of(call.loop).why_out()
        error = EmptyEndpointGroupError(self._name, "no endpoint", reasons)
        mark_queued(error)
        try:
            raise error
        finally:
            # It has this frame, which must not have it.
            del error


def _tell(group: Callable[[], EndpointGroup | None], event: Event) -> None:
    """Tell the listener of a group of an event, as long as that is kept."""
    found = group()
    if found is not None:
        found._listeners.notify(lambda listener: event(listener, found))


def _tell_nobody(event: Event) -> None:
    """Tell nobody."""
