"""Keep the endpoints of a group in one event loop, and find the next one."""

from __future__ import annotations

import math
import weakref
from typing import TYPE_CHECKING, Final

from .._breaker.strategy import CircuitBreakerStrategy
from .._call.servers import rests_of, tries_of
from .._clock import NEAR, chance
from .._errors import LimitedRequestError
from .._policies.queues import unsent
from .ejection import Choice, Trial, bring_back, may_try
from .selection import EndpointSelectionStrategy, shuffled_start
from .state import EndpointState, OutlierDetection

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from .._call.call import Call
    from .._call.record import Record
    from .._context.context import ClientRequestContext
    from .._request.endpoint import Endpoint
    from .._request.request import HttpRequest
    from .discovery import Discovery, Listed
    from .group import EndpointGroup


def least_tried(
    call: Call, record: Record, well: Sequence[EndpointState]
) -> Sequence[EndpointState]:
    """Return the endpoints that a call has tried least often.

    Not those that it knows to have asked for a wait, as long as there are others. For a
    further part of a body that which has served the one before, if it is well.
    """
    tries = tries_of(call, record)
    if not tries:
        there = [each for each in well if each.endpoint == call.stays_at]
        return [each for each in there if not each.is_out] or well
    now, rests = call.loop.time() + NEAR, rests_of(call)
    well = [each for each in well if rests.get(each.endpoint, now) <= now] or well
    fewest = min(tries.get(each.endpoint, 0) for each in well)
    return [each for each in well if tries.get(each.endpoint, 0) == fewest]


_USUAL_STRATEGY: Final = CircuitBreakerStrategy.on_server_error_status()

_KEPT: Final = 300.0
"""Seconds for which the state of an endpoint is kept that has left the list."""


class Roster:
    """The endpoints of a group in one event loop, with what is known of each.

    Args:
        group: The group.
        loop: The event loop; None to look at the endpoints alone.
    """

    states: tuple[EndpointState, ...] = ()
    """The endpoints in the order of the list."""

    well: tuple[EndpointState, ...] = ()
    """The endpoints that may be chosen now."""

    due: tuple[EndpointState, ...] = ()
    """Ejected endpoints whose trial is due."""

    due_at: float = math.inf
    """The time of the next change of ``well`` and ``due`` without an event."""

    unproven: int = 0
    """The number of healthy endpoints without a success since their last failure."""

    turn: float = 0.0
    """How far all turns are, where endpoints take turns."""

    parents: Mapping[EndpointGroup, bool]
    """Groups that contain this group; True if a further group follows in the list."""

    checker: Callable[[], object] | None = None
    """Called when there are endpoints to check; None without health checks."""

    strategy: CircuitBreakerStrategy
    """The judge of outcomes, as for a circuit breaker."""

    left: dict[Endpoint, EndpointState]
    """The endpoints that have left the list of late."""

    has_list: bool = False
    """Whether there was a list of endpoints yet."""

    discovery: Discovery | None = None
    """Asks for the list; None without queries."""

    last_failure: BaseException | None = None
    """The reason why the last query brought no list."""

    _lacking_since: float | None = None
    """The time since when requests wait, while there is nothing to choose from."""

    _is_expired = False
    """Whether the list has expired."""

    _serves_expired = False
    """Whether the expired list serves, for want of a newer one."""

    def __init__(
        self, group: EndpointGroup, loop: asyncio.AbstractEventLoop | None = None
    ) -> None:
        self._group = weakref.ref(group)
        self.loop: asyncio.AbstractEventLoop | None = loop
        self.selection: EndpointSelectionStrategy = group._selection
        self.detection: OutlierDetection | None = group._detection
        own = None if self.detection is None else self.detection.strategy
        self.strategy = own or _USUAL_STRATEGY
        self.patience: float = group._patience
        self.parents = {} if loop is None else group._parents
        self._may_fill = group._source.may_fill
        self.left = {}

    @property
    def is_followed(self) -> bool:
        """Whether a fallback group serves while no endpoint is healthy."""
        return any(self.parents.values())

    @property
    def _is_known(self) -> bool:
        """Whether the health of all endpoints is known, where that is checked."""
        if self.checker is None:
            return True
        return all(each.health is not None for each in self.states if each.weight)

    @property
    def may_fill(self) -> bool:
        """Whether endpoints may be added later."""
        return self._may_fill or not self._is_known

    @property
    def awaits_list(self) -> bool:
        """Whether the first list of endpoints is yet to come."""
        return self._may_fill and not self.has_list

    @property
    def awaited_until(self) -> float | None:
        """Until when requests wait for something to choose from; None if they do not.

        They do since the first one that had to.
        """
        is_yet_to_come = not self.has_list or self._is_expired or not self._is_known
        if self.well or not (is_yet_to_come and self.may_fill):
            return None
        now = self.now()
        if self._lacking_since is None:
            self._lacking_since = now
        until = self._lacking_since + self.patience
        return until if now < until else None

    @property
    def asks_at(self) -> float:
        """When the list is to be asked for again; ``inf`` if nobody is to do so."""
        return math.inf if self.discovery is None else self.discovery.asks_at

    def now(self) -> float:
        """Return the time of the loop; 0.0 without one."""
        return 0.0 if self.loop is None else self.loop.time()

    def set_listed(self, listed: Iterable[Listed]) -> None:
        """Replace the list, without duplicates; kept endpoints keep their states."""
        now, before = self.now(), self.states
        self.left = {
            endpoint: state
            for endpoint, state in self.left.items()
            if now - state.left_at <= _KEPT
        }
        known = self.left | {each.endpoint: each for each in before}
        states: dict[Endpoint, EndpointState] = {}
        for each in listed:
            endpoint = each.endpoint
            state = known.get(endpoint) or EndpointState(self, endpoint)
            state.list_as(each, len(states))
            states[endpoint] = state
            self.left.pop(endpoint, None)
        self.states = (*states.values(),)
        for state in before:
            if state.endpoint not in states:
                state.left_at, state.health = now, None
                self.left[state.endpoint] = state
        new = [each for each in self.states if each.weight and not each.turn]
        shuffled_start(new, chance, self.turn)
        self.last_failure, self._is_expired = None, False
        self._serves_expired = False
        self.has_list = bool(self.has_list or states or self.discovery is not None)
        self.review()
        self.wake()
        if self.checker is not None and not self._is_known:
            self.checker()
        if [each.endpoint for each in before] != [*states]:
            self.tell("on_endpoints_changed", (*states,))

    def tell(self, method: str, *facts: object) -> None:
        """Notify the listeners of the group of an event, while the group is alive."""
        group = self._group()
        if group is not None and self.loop is not None:
            group._listeners.notify(
                lambda listener: getattr(listener, method)(group, *facts)
            )

    def note_failed_query(self, failure: BaseException) -> None:
        """Note why a query has brought no list."""
        self.last_failure = failure.with_traceback(None)
        self.catch_up()
        self.wake()

    def wake(self) -> None:
        """Wake the calls that wait for an endpoint."""
        for each in [*self.parents]:
            each.wake()

    def catch_up(self) -> None:
        """Query the list if that is due; bring back endpoints whose pause is over."""
        now = self.now()
        if self.discovery is not None:
            may_serve = self.discovery.use(now)
            self._is_expired = not (may_serve or self._serves_expired)
        for state in self.states:
            until = state.ejected_until
            if state.is_set_aside and until is not None and until <= now + NEAR:
                bring_back(state)
        self.review()

    def review(self) -> None:
        """Determine the endpoints that may be chosen: of the lowest rank with any.

        Where none is well, all of those are that have a weight; with checks of their
        health the healthy ones, and none before it is known. So are all where neither
        of two families can be reached.
        """
        weighty = [each for each in self.states if each.weight]
        able: Sequence[EndpointState] = weighty
        if self.checker is not None:
            healthy = [each for each in able if each.health]
            able = healthy or (able if self._is_known else [])
        first = [each for each in able if not each.is_reserve]
        # An address of IPv6 that cannot be reached from here would draw all requests
        # while IPv4 is away. The reserve is not tried while it does not serve.
        needs_reserve = all(each.is_unreachable for each in first)
        if not needs_reserve:
            able, weighty = first, [each for each in weighty if not each.is_reserve]
        self._find_due(weighty)
        well = [each for each in able if each.ejected_until is None] or able
        if len(able) > len(first) and all(each.is_unreachable for each in able):
            well = able
        rank = min((each.rank for each in well), default=0)
        if self._is_expired:
            well = []
        self.well = (*(each for each in well if each.rank == rank or each.is_reserve),)
        if self.well:
            self._lacking_since = None
        self.settle()

    def _find_due(self, able: Iterable[EndpointState]) -> None:
        """Find the endpoints due for a trial, and the time of the next change."""
        now, due = self.now(), []
        due_at = math.inf if self.discovery is None else self.discovery.due_at
        for state in able:
            until = state.ejected_until
            if until is None:
                continue
            if until > now or state.is_set_aside:
                # A call that has waited for it is not to miss it by rounding.
                due_at = min(due_at, until - NEAR * state.is_set_aside)
            elif state.trial is None and (self.checker is None or state.health):
                due.append(state)
        self.due, self.due_at = (*due,), due_at

    def settle(self) -> None:
        """Count the healthy endpoints without a success since their last failure."""
        self.unproven = sum(not each.is_proven for each in self.well)

    def healthy(self) -> Sequence[EndpointState]:
        """Return the healthy endpoints: empty if all are ejected (panic mode)."""
        if self.now() >= self.due_at:
            self.catch_up()
        return () if all(each.is_out for each in self.well) else self.well

    def pick(
        self,
        ctx: ClientRequestContext,
        request: HttpRequest | None,
        service_key: str,
        rosters: Sequence[Roster],
        *,
        is_followed: bool = False,
    ) -> Choice | None:
        """Choose an endpoint for a request, perhaps for a trial; None if there is none.

        Without a *request* there is no trial. What is out is chosen only for want of
        others, and not where others follow.
        """
        call = ctx.call
        if self.due_at < math.inf and call.loop.time() >= self.due_at:
            self.catch_up()
        if self.due and request is not None:
            trial = self._trial(ctx, request)
            if trial is not None:
                return Choice(trial.state, service_key, rosters, trial)
        if not self.well and self._is_expired and self.awaited_until is None:
            # No newer list has come in time.
            self._serves_expired = True
            self.catch_up()
        well: Sequence[EndpointState] = self.well
        if not well or (is_followed and all(each.is_out for each in well)):
            return None
        # An attempt is among the requests of its call.
        if len(call.sent) > (ctx.attempt is not None):
            well = least_tried(call, ctx.record, well)
        return Choice(self.selection._choose(ctx, well), service_key, rosters)

    def _trial(self, ctx: ClientRequestContext, request: HttpRequest) -> Trial | None:
        """Begin the trial of an endpoint that is due, if one may be tried."""
        for state in self.due:
            if may_try(state, ctx, request) and self.selection._may_try(state, ctx):
                return Trial(state, ctx, request)
        return None

    @property
    def is_ready(self) -> bool:
        """Whether there are endpoints, of which some were checked if any are."""
        some_are = any(each.health is not None for each in self.states)
        return bool(self.states) and (some_are or self._is_known)


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


def too_late(
    name: str, seconds: float, rosters: Sequence[Roster]
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


def empty(name: str, rosters: Sequence[Roster]) -> EmptyEndpointGroupError:
    """Make the error for a request that no endpoint will ever come for."""
    return unsent(EmptyEndpointGroupError(name, "empty", why_out(rosters)))


def why_out(rosters: Sequence[Roster]) -> dict[str, str]:
    """Return each endpoint as text, with why it is not chosen."""
    found: dict[str, str] = {}
    for roster in rosters:
        now = roster.now()
        for state in roster.states:
            found.setdefault(str(state.endpoint), _why(state, now))
    return found


def _why(state: EndpointState, now: float) -> str:
    if not state.weight:
        return "weight 0"
    if state.ejected_until is None or state.health is False:
        return state.reason or "well"
    seconds = max(0.0, state.ejected_until - now)
    return f"out for {seconds:.3f} s: {state.reason}"
