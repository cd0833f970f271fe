"""The rate limits of a request: tokens of all limits are taken, or of none."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from .._clock import NEAR, loop_time
from .._context.holdings import is_held
from .._errors import bad_argument, is_finite
from .rate_limit import Admission, RateLimit, RateLimitError, cost_of, take_now, wait_in
from .rate_rules import Charge, RatePermit

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .._call.call import Call
    from .._context.context import ClientRequestContext
    from .._request.request import HttpRequest
    from .rate_limit import SharedTurn
    from .rate_rules import Reply


class TurnTime(NamedTuple):
    """The ends of the wait for a turn: the timeout of the wait, and the deadline."""

    latest: float
    """When the timeout ends; a turn at that moment is in time."""

    deadline: float
    """When the time of the call ends; a turn at that moment is late."""

    timeout: float | None = None
    """The longest wait in seconds."""

    of_call: float = math.inf
    """The time limit of the call, in seconds from its start."""

    @classmethod
    def of(cls, call: Call, timeout: float | None) -> TurnTime:
        """Return the time of a wait that begins now."""
        now = loop_time()
        latest = math.inf if timeout is None else now + timeout
        # That of the attempt has not begun.
        deadline = now + call.time_of(call)
        end = math.inf if call.deadline is None else call.deadline
        return cls(latest, deadline, timeout, end - call.started)

    def is_late(self, turn: float) -> bool:
        """Say whether a turn comes too late."""
        return self.missed_by(turn) is not None

    def missed_by(self, turn: float) -> str | None:
        """Say what a turn misses, of both the one that ends first; None if neither."""
        missed = []
        if turn > self.latest + NEAR:
            words = f"within the timeout of {_shown(self.timeout or 0.0)}"
            missed.append((self.latest, words))
        if turn >= self.deadline:
            words = f"before the deadline of the call ({_shown(self.of_call)})"
            missed.append((self.deadline, words))
        return min(missed, default=(0.0, None))[1]

    def refusal(self, limit: RateLimit, turn: float) -> RateLimitError:
        """Make the error for a request whose turn at a limit comes too late."""
        retry_in = turn - loop_time()
        return RateLimitError(limit, retry_in, missed=self.missed_by(turn))


def _shown(seconds: float) -> str:
    return f"{round(float(seconds), 3)} s"


class Price(NamedTuple):
    """Names a limit, and the cost of a request there."""

    limit: RateLimit
    cost: float

    is_on_credit: bool = False
    """Whether an attempt around has a turn there, so that the request waits for none.
    """

    @property
    def has_turn(self) -> bool:
        """Whether the request has to wait for a turn; what costs nothing has not."""
        return self.cost > 0 and not self.is_on_credit


class Permits(RatePermit):
    """The tokens taken from each limit of a request.

    Args:
        turns: The turn of the request at each limit.
        waited: Seconds that the request waited, or would have waited if enforced.
        limit: Where it would have waited longest, if at all and if enforced.
    """

    __slots__ = ("_turns", "limit", "waited")

    def __init__(
        self,
        turns: Iterable[tuple[RateLimit, RatePermit]],
        waited: float = 0.0,
        limit: RateLimit | None = None,
    ) -> None:
        self._turns = tuple(turns)
        self.waited = waited
        self.limit = limit

    def learn(self, answer: Reply) -> None:
        for _, turn in self._turns:
            turn.learn(answer)

    def lose(self) -> None:
        for _, turn in self._turns:
            turn.lose()

    def give_back(self) -> None:
        for _, turn in self._turns:
            turn.give_back()

    @property
    def charges(self) -> Iterable[tuple[RateLimit, Charge]]:
        for limit, turn in self._turns:
            if isinstance(turn, Charge) and not limit._is_plain:
                yield limit, turn


class RateGate:
    """The limits of a request, at each of which it needs a turn.

    Args:
        limits: The limits.
    """

    __slots__ = ("_only", "in_memory", "limits", "shared")

    limits: tuple[RateLimit, ...]

    in_memory: tuple[RateLimit, ...]
    """The limits with a queue in this process."""

    shared: RateLimit | None
    """The limit in a shared storage, asked last because tokens cannot be returned."""

    def __init__(self, limits: Iterable[RateLimit]) -> None:
        self.limits = tuple(limits)
        self.in_memory = tuple(each for each in self.limits if not each._is_shared)
        shared = [each for each in self.limits if each._is_shared]
        self.shared = shared[0] if shared else None
        is_alone = len(self.limits) == 1 and self.limits[0]._is_plain
        self._only = self.limits[0]._line if is_alone else None

    def try_pass(self, ctx: ClientRequestContext, now: float) -> RatePermit | None:
        """Let a request pass without a wait, if no shared limit must be asked."""
        if self._only is None or is_held(ctx, self.limits[0]):
            return None
        return self._only.try_take(now)

    async def wait(
        self,
        ctx: ClientRequestContext,
        request: HttpRequest,
        time: TurnTime,
        *,
        enforce: bool,
    ) -> Permits:
        """Wait for the tokens of each limit, within *time*; on credit in a dry run.

        Raises:
            RateLimitError: A turn does not come in time, or the cost is above a burst.
            Exception: A function of the user's has raised it.
        """
        prices = self._prices(ctx, request)
        shared = self.shared
        if shared is None:
            return await pass_all(prices, time, enforce=enforce)
        turn = shared._shared_turn(ctx, request)
        if is_held(ctx, shared):
            turn = partial(_uncounted, turn)
        permits = await pass_all(prices, time, enforce=enforce)
        return await _wait_for_shared(permits, shared, turn, time, enforce=enforce)

    def _prices(self, ctx: ClientRequestContext, request: HttpRequest) -> list[Price]:
        """Return what a request costs at the limits of this process.

        Raises:
            RateLimitError: That is more than it can ever be.
            Exception: A function of the user's has raised it.
        """
        prices = []
        for limit in self.in_memory:
            cost = cost_of(limit._cost, ctx, request)
            if cost > limit._burst:
                raise RateLimitError(limit, math.inf, cost=cost, burst=limit._burst)
            prices.append(Price(limit, cost, is_held(ctx, limit)))
        return prices

    def untaken(self) -> Permits:
        """Return permits without tokens, which only report the answer to the limits."""
        return Permits((each, each._line.rule) for each in self.in_memory)

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self.limits))
        return shown if len(self.limits) == 1 else f"[{shown}]"


async def pass_all(
    prices: list[Price], time: TurnTime, *, enforce: bool = True
) -> Permits:
    """Wait for a turn at all limits that comes in time.

    A dry run takes the tokens at once, on credit: the limits look to later requests as
    if enforced.

    Raises:
        RateLimitError: There is none in time.
    """
    # What costs nothing waits for nobody.
    costs = [(each.limit._line, each.cost) for each in prices if each.has_turn]
    turns = take_now(costs)
    if turns is not None:
        return _permits(prices, turns)
    started = loop_time()
    limit, turn = latest_of(prices)
    if time.is_late(turn):
        raise time.refusal(limit, turn)
    if not enforce:
        early = [line.rule.take_early(started, cost) for line, cost in costs]
        return _permits(prices, early, turn - started, limit)
    turns = await wait_in(costs, min(max(time.latest, turn), time.deadline))
    if turns is None:
        raise time.refusal(*latest_of(prices))
    return _permits(prices, turns, loop_time() - started)


async def _uncounted(turn: SharedTurn, latest: float, deadline: float) -> Admission:
    """Take a turn of a storage, if there is one now, and go out in any case."""
    await turn(loop_time(), deadline)
    return Admission(is_given=True, seconds=0.0)


async def _wait_for_shared(
    permits: Permits,
    shared: RateLimit,
    turn: SharedTurn,
    time: TurnTime,
    *,
    enforce: bool,
) -> Permits:
    """Wait for a turn of a storage, which a dry run only asks for one.

    Without a turn in time all permits are given back.

    Raises:
        RateLimitError: There is none in time.
    """
    is_in_time = False
    try:
        latest = time.latest if enforce else loop_time()
        is_given, seconds = await turn(latest, time.deadline)
        then = loop_time() + seconds
        is_in_time = is_given or not (enforce or time.is_late(then))
    finally:
        if not is_in_time:
            permits.give_back()
    if not is_in_time:
        raise time.refusal(shared, then)
    if enforce:
        permits.waited += seconds
    elif not is_given and (permits.limit is None or seconds > permits.waited):
        permits.waited, permits.limit = seconds, shared
    return permits


def latest_of(prices: list[Price]) -> tuple[RateLimit, float]:
    """Return the limit where a request that comes now has its turn last, and when."""
    now = loop_time()
    turns = [
        (each.limit, each.limit._line.forecast(now, each.cost))
        for each in prices
        if each.has_turn
    ]
    return max(turns, key=lambda each: each[1])


def _permits(
    prices: list[Price],
    turns: Sequence[RatePermit],
    waited: float = 0.0,
    limit: RateLimit | None = None,
) -> Permits:
    taken, now = iter(turns), loop_time()

    def turn_at(price: Price) -> RatePermit:
        if price.has_turn:
            return next(taken)
        return price.limit._line.rule.take_early(now, price.cost)

    return Permits(((each.limit, turn_at(each)) for each in prices), waited, limit)


def gate_of(name: str, limits: object) -> RateGate:
    """Make the gate of a limit, a list of limits, or a number of requests a second.

    Raises:
        ValueError: It is nothing of that, or the list is not as it has to be.
    """
    if is_finite(limits) and limits > 0:
        limits = RateLimit(limits)
    if isinstance(limits, RateLimit):
        return RateGate([limits])
    expected = "a number > 0, a RateLimit, or a list of them"
    if not isinstance(limits, list | tuple) or not limits:
        raise bad_argument(name, limits, expected)
    if not all(isinstance(each, RateLimit) for each in limits):
        raise bad_argument(name, limits, expected)
    if len({id(each) for each in limits}) < len(limits):
        raise bad_argument(name, limits, "each limit once")
    if sum(each._is_shared for each in limits) > 1:
        raise bad_argument(name, limits, "at most one limit that processes share")
    return RateGate(limits)
