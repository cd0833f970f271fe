"""Know of one endpoint of a group how busy, how quick and how well it is."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, Protocol

from .._call.rounds import Rounds
from .._call.tries import tries_of
from .._request.endpoint import joined, keep, origin_key
from .address import AddressMiddleware
from .latency import seconds_of

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable, Container, Sequence

    import aiohttp
    from yarl import URL

    from .._breaker.strategy import CircuitBreakerStrategy
    from .._breaker.window import SlidingWindow
    from .._context.context import ClientRequestContext
    from .._request.endpoint import Endpoint
    from .discovery import Listed
    from .latency import Scale
    from .listener import EndpointGroupListener, Group
    from .outliers import OutlierDetection

    Event = Callable[[EndpointGroupListener, Group], None]
    Tell = Callable[[Event], None]


UNHEALTHY: Final = "unhealthy"
"""The reason of an endpoint that is out because a check of its health failed."""

NO_CONNECTION: Final = "no connection"
"""How a request does not reach an endpoint that cannot be connected to."""

SILENCE: Final = "silence"
"""How a request does not reach an endpoint that says nothing in time."""


class Peers(Protocol):
    """The endpoints of a group in one event loop; see :class:`.Roster`."""

    detection: OutlierDetection | None
    due: tuple[EndpointState, ...]
    loop: AbstractEventLoop | None
    scale: Scale
    service_key: str
    states: tuple[EndpointState, ...]
    strategy: CircuitBreakerStrategy
    tell: Tell
    turn: float
    unsettled: int
    well: tuple[EndpointState, ...]

    @property
    def is_followed(self) -> bool:
        """Whether others serve while none of these is well."""
        ...

    def now(self) -> float:
        """Return the time of the loop."""
        ...

    def review(self) -> None:
        """Find those that may be chosen now."""
        ...

    def settle(self) -> None:
        """Count those that have not answered yet, or failed since."""
        ...

    def well_now(self) -> Sequence[EndpointState]:
        """Return the healthy endpoints."""
        ...

    def choose(
        self, ctx: ClientRequestContext, among: Sequence[EndpointState]
    ) -> EndpointState | None:
        """Choose one for a request that is sent again; None where it is to stay."""
        ...


class EndpointState:
    """Shows the load, the latency and the health of one endpoint; read-only for users.

    Args:
        roster: The endpoints of the group.
        endpoint: The endpoint.
    """

    __slots__ = (
        "_urls",
        "chance_at",
        "changed_at",
        "ejected_for",
        "ejected_until",
        "endpoint",
        "failures",
        "grown",
        "health",
        "heat",
        "in_flight",
        "is_guess",
        "is_reserve",
        "is_set_aside",
        "key",
        "middleware",
        "origin",
        "penalty",
        "place",
        "rank",
        "roster",
        "rounds",
        "service_key",
        "times",
        "trial",
        "turn",
        "unreached",
        "weight",
        "window",
    )

    endpoint: Endpoint
    """The endpoint."""

    weight: float
    """Its share of the requests, compared with others; 0 for none."""

    in_flight: int
    """How many requests are under way, to the end of their bodies."""

    ejected_until: float | None
    """When it may come back, by the event loop's clock; None while it is well."""

    ejected_for: str | None
    """Why it may come back only then; None while it may be chosen."""

    health: bool | None
    """What the last check of its health said; None where there was none."""

    rank: int
    """It serves only while none of a lower rank can."""

    is_reserve: bool
    """Whether the endpoint serves only while no other one can be reached."""

    unreached: str | None
    """The way the last request failed to reach the endpoint; None if answered."""

    place: int
    """Its place in the list of the group, from 0."""

    turn: float
    """How far its share is used up, where endpoints take turns."""

    heat: float
    """Its latency, as :mod:`.latency` keeps it."""

    grown: float
    """The growth at its last answer; 0 as long as there was none."""

    is_guess: bool
    """Whether it has answered nothing yet but that requests were wrong."""

    penalty: float
    """Seconds that it counts as, at least, because it has failed; 0 else."""

    chance_at: float
    """When it gets a request in spite of its penalty."""

    failures: int
    """Failures since the last success."""

    window: SlidingWindow | None
    """Its successes and failures of late, where outliers are detected."""

    rounds: Rounds
    """Tells failures of one restart from others."""

    changed_at: float
    """When it was ejected, or came back, last."""

    times: int
    """How often it was ejected since it was well."""

    is_set_aside: bool
    """Whether it comes back without a trial."""

    trial: object
    """The request that tries it; None without one."""

    middleware: aiohttp.ClientMiddlewareType | None
    """Connects to its address; None where its name is looked up."""

    origin: tuple[str, str, int | None]
    """What all its URLs have in common."""

    def __init__(self, roster: Peers, endpoint: Endpoint) -> None:
        self.roster: Peers = roster
        self.endpoint = endpoint
        self.weight = endpoint.weight
        self.key: str = endpoint.key
        self.origin = origin_key(endpoint.url)
        is_named = endpoint.address is None
        self.middleware = None if is_named else AddressMiddleware(endpoint)
        self.service_key: str = roster.service_key
        self.rank = self.place = self.in_flight = self.failures = self.times = 0
        self.turn = self.heat = self.grown = self.penalty = 0.0
        self.changed_at = self.chance_at = -math.inf
        self.ejected_until = self.ejected_for = self.trial = self.health = None
        self.window = self.unreached = None
        self.rounds = Rounds()
        self.is_set_aside, self.is_guess, self.is_reserve = False, True, False
        self._urls: dict[URL, URL] = {}

    def list_as(self, listed: Listed, place: int) -> None:
        """Take what the list says of it now, and its place there."""
        self.endpoint, self.rank, self.is_reserve = listed
        self.weight, self.place = self.endpoint.weight, place
        if self.weight:
            # With another weight before, its turn may be far away.
            self.turn = min(self.turn, self.roster.turn + 1.0 / self.weight)

    @property
    def latency(self) -> float | None:
        """Seconds that it takes to answer, an estimate; None before the first answer.

        A failure counts as more, until the next success.
        """
        roster = self.roster
        if roster.loop is None or not (self.grown or self.penalty):
            return None
        return seconds_of(self, roster.scale.growth(roster.loop.time()))

    @property
    def reason(self) -> str | None:
        """Why it is out; None while it is well."""
        return UNHEALTHY if self.health is False else self.ejected_for

    @property
    def is_out(self) -> bool:
        """Whether it is ejected, set aside, or unhealthy."""
        return self.ejected_until is not None or self.health is False

    @property
    def is_unreachable(self) -> bool:
        """Whether the endpoint refused the last connection, or was silent lately."""
        is_silent = self.unreached == SILENCE and self.ejected_until is not None
        return is_silent or self.unreached == NO_CONNECTION

    @property
    def state(self) -> EndpointState:
        """Itself, as :class:`.Trial` has it."""
        return self

    @property
    def is_settled(self) -> bool:
        """Whether it has answered, and not failed since."""
        return self.grown > 0.0 and not self.penalty

    def url_of(self, asked: URL) -> URL:
        """Return the URL there for what is *asked*."""
        url = self._urls.get(asked)
        if url is None:
            url = asked if asked.absolute else joined(self.endpoint.url, asked)
            keep(self._urls, asked, url)
        return url

    def has_other(self, tried: Container[Endpoint]) -> bool:
        """Say whether an endpoint of the group is well that was not tried."""
        return any(each.endpoint not in tried for each in self.roster.well_now())

    def other_for(self, ctx: ClientRequestContext) -> EndpointState | None:
        """Return a healthy endpoint that the call has not tried, or None."""
        tried = {self.endpoint, *tries_of(ctx.call)}
        well = self.roster.well_now()
        untried = [each for each in well if each.endpoint not in tried]
        return untried[0].roster.choose(ctx, untried) if untried else None

    def to(self, state: EndpointState) -> EndpointState:
        """Return the way to another endpoint of the group: that."""
        return state

    def end(self) -> None:
        """Count a request, and the body of its response, as over."""
        self.in_flight -= 1

    def __repr__(self) -> str:
        out = "" if self.reason is None else f" out: {self.reason}"
        return f"<EndpointState {self.endpoint} in_flight={self.in_flight}{out}>"
