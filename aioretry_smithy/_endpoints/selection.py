"""Choose an endpoint for each request."""

from __future__ import annotations

import math
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, ClassVar, Final

from .. import _checks as check
from .._clock import dice as chance
from .._errors import bad_argument, is_plain_function
from .._failures.failure import judge
from .._text.printable import name_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .._context.context import ClientRequestContext
    from .roster import Roster
    from .state import EndpointState

    Key = Callable[[ClientRequestContext], str]


_USUAL_DECAY: Final = 10.0
_USUAL_PENALTY: Final = 1.0


class EndpointSelectionStrategy:
    """Chooses among the endpoints of a group, one for each request.

    A subclass overrides :meth:`select` and may have any ``__init__``; one object serves
    any number of groups. After Armeria's ``EndpointSelectionStrategy``.

    >>> class Idlest(EndpointSelectionStrategy):
    ...     def select(self, ctx, candidates):
    ...         return min(candidates, key=lambda each: each.in_flight)
    """

    _moves: ClassVar[bool] = True
    """Whether an immediate resend may go to a different endpoint."""

    _decay: float = _USUAL_DECAY
    """Seconds in which estimates of latency fall to ``1 / e``."""

    _failure_penalty: float = _USUAL_PENALTY
    """The least number of seconds that a failure counts for."""

    def select(
        self, ctx: ClientRequestContext, candidates: Sequence[EndpointState]
    ) -> EndpointState:
        """Return one of the candidates; plain, not async.

        An exception goes to the caller, and nothing is sent.

        Args:
            ctx: The call, or the attempt.
            candidates: The endpoints that are well and, as long as there are any, not
                yet tried by this call; at least one.
        """
        raise NotImplementedError

    def _choose(
        self, ctx: ClientRequestContext, candidates: Sequence[EndpointState]
    ) -> EndpointState:
        """Call ``select()``; refuse a result that is not a candidate.

        What goes wrong is a mistake of its author's: no retry would mend it.
        """
        try:
            return _checked(self.select(ctx, candidates), candidates)
        except Exception as error:
            judge(error).raised_by_caller = True
            raise

    def _may_try(self, state: EndpointState, ctx: ClientRequestContext) -> bool:
        """Say whether a request may go to an endpoint that is to be tried."""
        return True

    @staticmethod
    def peak_ewma(
        decay: float = 10.0, failure_penalty: float = 1.0
    ) -> EndpointSelectionStrategy:
        """Choose the better of two random endpoints: quick and idle; the default.

        The one with the lower ``latency * (in_flight + 1) / weight``. The latency is an
        average of the times to the headers, in which new ones count more; it rises at
        once, and falls in time. A failure counts as *failure_penalty*, or longer where
        it took longer, until the next success; so long after it, one request tries
        again. After Finagle's and Linkerd's balancers.

        Args:
            decay: Seconds in which what was learned loses its weight, by the factor
                ``e``; > 0.
            failure_penalty: Seconds that a failure counts as, at least; >= 0.

        Raises:
            ValueError: An argument is not as described.

        >>> EndpointSelectionStrategy.peak_ewma()
        EndpointSelectionStrategy.peak_ewma(decay=10.0, failure_penalty=1.0)
        """
        return _PeakEwma(decay, failure_penalty)

    @staticmethod
    def least_requests() -> EndpointSelectionStrategy:
        """Choose of two random endpoints the one with fewer requests under way.

        The one with the lower ``(in_flight + 1) / weight``. Of all, many clients would
        take the same one at once.

        >>> EndpointSelectionStrategy.least_requests()
        EndpointSelectionStrategy.least_requests()
        """
        return _LEAST_REQUESTS

    @staticmethod
    def round_robin() -> EndpointSelectionStrategy:
        """Choose endpoints in turn, in proportion to the weights, from a random start.

        >>> EndpointSelectionStrategy.round_robin()
        EndpointSelectionStrategy.round_robin()
        """
        return _ROUND_ROBIN

    @staticmethod
    def in_order() -> EndpointSelectionStrategy:
        """Choose the first healthy endpoint of the list.

        >>> EndpointSelectionStrategy.in_order()
        EndpointSelectionStrategy.in_order()
        """
        return _IN_ORDER

    @staticmethod
    def sticky(key: Key) -> EndpointSelectionStrategy:
        """Send all requests with the same key to the same endpoint.

        An endpoint that is lost moves only its own keys, by rendezvous hashing; weights
        are obeyed.

        Args:
            key: A plain function ``(ctx) -> str``. What it raises goes to the caller.

        Raises:
            ValueError: *key* is no plain function, or returns no str.

        >>> strategy = EndpointSelectionStrategy.sticky(
        ...     lambda ctx: ctx.request.headers["X-Tenant"]
        ... )
        """
        return _Sticky(key)


def _checked(chosen: object, well: Sequence[EndpointState]) -> EndpointState:
    """Return what a strategy has chosen, if that is a candidate."""
    for state in well:
        if chosen is state:
            return state
    raise bad_argument("select()", chosen, "one of the candidates")


class _BuiltIn(EndpointSelectionStrategy):
    """A strategy of this library, whose choice needs no check."""

    __slots__ = ()

    def _choose(
        self, ctx: ClientRequestContext, candidates: Sequence[EndpointState]
    ) -> EndpointState:
        return self.select(ctx, candidates)

    def __repr__(self) -> str:
        name = type(self).__name__.strip("_")
        snake = "".join(f"_{each.lower()}" if each.isupper() else each for each in name)
        return f"EndpointSelectionStrategy.{snake.strip('_')}()"


@dataclass(frozen=True, slots=True, repr=False)
class _PeakEwma(_BuiltIn):
    _decay: float
    _failure_penalty: float

    def __post_init__(self) -> None:
        check.positive("decay", self._decay)
        check.not_negative("failure_penalty", self._failure_penalty)

    def select(
        self, ctx: ClientRequestContext, candidates: Sequence[EndpointState]
    ) -> EndpointState:
        roster = candidates[0].roster
        if len(candidates) == 1:
            return candidates[0]
        if roster.unproven:
            return self._choose_anew(roster, candidates)
        one, other = _two(candidates)
        now = roster.now()
        cost = one.estimate.at(now) * (one.in_flight + 1) * other.weight
        other_cost = other.estimate.at(now) * (other.in_flight + 1) * one.weight
        return one if cost <= other_cost else other

    @staticmethod
    def _choose_anew(roster: Roster, well: Sequence[EndpointState]) -> EndpointState:
        """Choose where some endpoints have not answered yet, or failed since."""
        now = roster.now()
        preferred = _first_to_ask(well, now)
        if preferred is not None:
            return preferred
        known = [each.latency_at(now) for each in well if each.is_proven]
        slowest = max(known, default=1.0)

        def cost(state: EndpointState) -> float:
            seconds = state.latency_at(now) if state.has_history else slowest
            return seconds * (state.in_flight + 1) / state.weight

        return min(_two(well), key=cost)

    def __repr__(self) -> str:
        settings = f"decay={self._decay}, failure_penalty={self._failure_penalty}"
        return f"EndpointSelectionStrategy.peak_ewma({settings})"


def _first_to_ask(well: Sequence[EndpointState], now: float) -> EndpointState | None:
    """Return an untried endpoint that should get the next request, if there is any.

    That is one without history and without a request, or one that failed a while ago.
    """
    new = [each for each in well if not (each.has_history or each.in_flight)]
    if new:
        return new[int(chance() * len(new))]
    for state in well:
        if state.penalty and now >= state.chance_at:
            state.chance_at = now + max(state.penalty, _USUAL_PENALTY)
            return state
    return None


def _two(well: Sequence[EndpointState]) -> Sequence[EndpointState]:
    """Draw two different endpoints at random, in any order."""
    number = len(well)
    if number < 2:
        return well
    first, second = int(chance() * number), int(chance() * (number - 1))
    return well[first], well[second + (second >= first)]


class _LeastRequests(_BuiltIn):
    __slots__ = ()

    def select(
        self, ctx: ClientRequestContext, candidates: Sequence[EndpointState]
    ) -> EndpointState:
        drawn = _two(candidates)
        return min(drawn, key=lambda each: (each.in_flight + 1) / each.weight)


class _RoundRobin(_BuiltIn):
    """Chooses the endpoint whose turn comes first: each costs ``1 / weight``."""

    __slots__ = ()

    def select(
        self, ctx: ClientRequestContext, candidates: Sequence[EndpointState]
    ) -> EndpointState:
        roster, chosen, first = candidates[0].roster, candidates[0], math.inf
        for state in candidates:
            # One that was out for a while does not make up for all of it.
            turn = max(state.turn, roster.turn - 1.0 / state.weight)
            if turn < first:
                chosen, first = state, turn
        chosen.turn = first + 1.0 / chosen.weight
        roster.turn = max(roster.turn, first)
        return chosen


class _InOrder(_BuiltIn):
    __slots__ = ()

    def select(
        self, ctx: ClientRequestContext, candidates: Sequence[EndpointState]
    ) -> EndpointState:
        return min(candidates, key=lambda each: each.place)


_LEAST_REQUESTS: Final = _LeastRequests()
_ROUND_ROBIN: Final = _RoundRobin()
_IN_ORDER: Final = _InOrder()


class _Sticky(EndpointSelectionStrategy):
    __slots__ = ("_key",)

    _moves = False

    def __init__(self, key: Key) -> None:
        if not is_plain_function(key):
            raise bad_argument("key", key, "a plain function (ctx) -> str")
        self._key = key

    def select(
        self, ctx: ClientRequestContext, candidates: Sequence[EndpointState]
    ) -> EndpointState:
        key = self._key(ctx)
        if not isinstance(key, str):
            raise bad_argument("key(ctx)", key, "a str")
        name = key.encode("utf-8", "surrogatepass")
        return max(candidates, key=lambda each: _score(name, each))

    def _may_try(self, state: EndpointState, ctx: ClientRequestContext) -> bool:
        candidates = (*state.roster.well, state)
        return self._choose(ctx, candidates) is state

    def __repr__(self) -> str:
        return f"EndpointSelectionStrategy.sticky({name_of(self._key)})"


def _score(name: bytes, state: EndpointState) -> float:
    """Draw a number for a key and an endpoint: the highest one gets the key."""
    about = f"{state.endpoint.url} {state.endpoint.address}".encode()
    digest = blake2b(about, key=blake2b(name, digest_size=16).digest(), digest_size=8)
    drawn = (int.from_bytes(digest.digest()) + 1) / (2**64 + 1)
    return -state.weight / math.log(drawn)


def shuffled_start(
    states: Sequence[EndpointState], dice: Callable[[], float], turn: float
) -> None:
    """Let new endpoints have their turns in order, from a random one on.

    Args:
        states: The endpoints.
        dice: Draws a number in [0, 1).
        turn: How far the turns of all are.
    """
    number = len(states)
    start = int(dice() * number)
    for place, state in enumerate(states):
        state.turn = turn + (place - start) % number / number / state.weight
