"""The rate limits of a request: tokens of all limits are taken, or of none."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from .._clock import NEAR, loop_time
from .._context.holdings import is_held
from .._errors import LimitedRequestError, bad_argument, is_finite
from .line import take_now, wait_in
from .rate_limit import Admission, Charge, RateLimit, cost_of
from .resets import Resets

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .._call.call import Call
    from .._context.context import ClientRequestContext
    from .._request.request import HttpRequest
    from .line import Costs, RatePermit, Reply, Turn
    from .rate_limit import SharedTurn

    LastTurn: TypeAlias = tuple[RateLimit, SharedTurn]
    """The shared limit, which is asked last, and the function that asks."""

    OnCredit: TypeAlias = tuple["Permits", RateLimit | None, float]
    """Permits taken, the limit that would have delayed the request longest, until when.

    There is no such limit where all turns have come.
    """


_KEPT_OF_LIMIT: Final = {"limit": ("pending",)}


class RateLimitError(LimitedRequestError):
    """The turn of the request at a rate limit comes too late; it was not sent.

    No circuit breaker and no retry limiter counts it. Any method may be sent again, and
    a retrying client waits until the turn would have come.

    The turn of a request that costs more than the burst never comes. Such an error is
    permanent: ``retry_in`` is ``inf``, ``retry_safety()`` says ``NO``, and nothing is
    tried again.

    It may be pickled; it then has a snapshot of the limit, with its ``pending``.

    Args:
        limit: The limit that was reached; of several, the one whose turn is latest.
        retry_in: Seconds until a request may go out, counted from the refusal.
        cost: What the request costs, where that is more than the burst.
        burst: The most that a request may cost, where this one costs more.
        missed: Until when the turn should have come, in words.
    """

    limit: RateLimit
    """The limit that was reached; of several limits, the last to admit the request."""

    retry_in: float
    """Seconds until a request may go out, counted from the refusal."""

    cost: float | None
    """The cost of the request if above the burst; else None."""

    burst: float | None
    """The highest cost of a request, if this request costs more; else None."""

    missed: str | None
    """The missed time limit in words (``within the timeout of 2.0 s``); None if refused
    for a different reason.
    """

    _snapshots = _KEPT_OF_LIMIT

    def __init__(
        self,
        limit: RateLimit,
        retry_in: float,
        *,
        cost: float | None = None,
        burst: float | None = None,
        missed: str | None = None,
    ) -> None:
        super().__init__(limit, retry_in)
        self.limit = limit
        self.retry_in = retry_in
        self.cost = cost
        self.burst = burst
        self.missed = missed

    @property
    def retry_after(self) -> float:
        """An alias of ``retry_in``, which retrying clients read."""
        return self.retry_in

    @property
    def is_retry_safe(self) -> bool | None:
        """False where the request would be refused again; retrying clients ask it."""
        return None if self.cost is None else False

    def __str__(self) -> str:
        if self.cost is not None:
            what = f"a cost of {self.cost} is above the burst of {self.burst}"
        else:
            missed = self.missed or "in time"
            what = f"no turn {missed}; next in {self.retry_in:.3f} s"
        return f"{self.limit!r}: {what}"


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
        """Make the error for a request whose turn at a limit is then."""
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


@dataclass(frozen=True, slots=True, eq=False)
class Permits:
    """The tokens taken from each limit of a request."""

    turns: tuple[tuple[RateLimit, Turn], ...]

    waited: float = 0.0
    """Seconds that the request waited for permits."""

    def learn(self, answer: Reply) -> None:
        """Let the limits learn from an answer."""
        for _, turn in self.turns:
            turn.learn(answer)

    def lose(self) -> None:
        """Settle the permits of a request without an answer."""
        for _, turn in self.turns:
            turn.lose()

    def give_back(self) -> None:
        """Give all turns back, because the request is not sent."""
        for _, turn in self.turns:
            turn.give_back()

    @property
    def charges(self) -> Iterable[tuple[RateLimit, Charge]]:
        """Pairs of charges that may be corrected, and limits."""
        for limit, turn in self.turns:
            if isinstance(turn, Charge) and not limit._is_plain:
                yield limit, turn


class RateGate:
    """The limits of a request, at each of which it needs a turn.

    Args:
        limits: The limits.

    Raises:
        ValueError: There is none among *limits*, or one of them twice, or more than one
            that is shared by processes, or something else.
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
        self, ctx: ClientRequestContext, request: HttpRequest, time: TurnTime
    ) -> Permits:
        """Wait for the tokens of each limit, within *time*.

        Raises:
            RateLimitError: It does not come in time.
            Exception: A function of the user's has raised it.
        """
        prices = self._prices(ctx, request)
        last = self._last_turn(ctx, request)
        permits = await pass_all(prices, time)
        if last is None:
            return permits
        return await _wait_for_last(permits, last, time)

    async def take_on_credit(
        self, ctx: ClientRequestContext, request: HttpRequest, deadline: float
    ) -> OnCredit:
        """Take tokens at each limit, even if there are none (``enforce=False``).

        Raises:
            RateLimitError: It costs more than it can ever be.
            Exception: A function of the user's has raised it.
        """
        prices = self._prices(ctx, request)
        last = self._last_turn(ctx, request)
        on_credit = _take_early(prices)
        return on_credit if last is None else await _ask(on_credit, last, deadline)

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

    def _last_turn(
        self, ctx: ClientRequestContext, request: HttpRequest
    ) -> LastTurn | None:
        """Return the awaitable for a turn of the shared limit, if any.

        Raises:
            RateLimitError: It costs more than it can ever be.
            Exception: A function of the user's has raised it.
        """
        shared = self.shared
        if shared is None:
            return None
        turn = shared._shared_turn(ctx, request)
        return shared, (partial(_uncounted, turn) if is_held(ctx, shared) else turn)

    def not_held(self, ctx: ClientRequestContext) -> list[RateLimit]:
        """Return the limits at which no attempt around has a turn."""
        return [each for each in self.limits if not is_held(ctx, each)]

    def untaken(self) -> Permits:
        """Return permits without tokens, which only report the answer to the limits."""
        rules = ((each, each._line.rule) for each in self.in_memory)
        return Permits(tuple((each, r) for each, r in rules if isinstance(r, Resets)))

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self.limits))
        return shown if len(self.limits) == 1 else f"[{shown}]"


async def pass_all(prices: list[Price], time: TurnTime) -> Permits:
    """Wait for a turn at all limits that comes in time.

    Raises:
        RateLimitError: There is none in time.
    """
    started = loop_time()
    # What costs nothing waits for nobody.
    costs = costs_of(prices)
    turns = take_now(costs)
    if turns is not None:
        return _permits(prices, turns)
    _, turn = latest_of(prices)
    if not time.is_late(turn):
        turns = await wait_in(costs, min(max(time.latest, turn), time.deadline))
    if turns is None:
        limit, turn = latest_of(prices)
        raise time.refusal(limit, turn)
    return _permits(prices, turns, loop_time() - started)


async def _uncounted(turn: SharedTurn, latest: float, deadline: float) -> Admission:
    """Take a turn of a storage, if there is one now, and go out in any case."""
    await turn(loop_time(), deadline)
    return Admission(is_given=True, seconds=0.0)


async def _wait_for_last(permits: Permits, last: LastTurn, time: TurnTime) -> Permits:
    """Wait for a turn of a storage; without the turn give back all permits.

    Raises:
        RateLimitError: There is none in time.
    """
    shared, turn = last
    is_given = False
    try:
        is_given, seconds = await turn(time.latest, time.deadline)
    finally:
        if not is_given:
            permits.give_back()
    if not is_given:
        raise time.refusal(shared, loop_time() + seconds)
    return replace(permits, waited=permits.waited + seconds)


def _take_early(prices: list[Price]) -> OnCredit:
    """Take tokens on credit; the limit looks to later requests as if enforced."""
    costs = costs_of(prices)
    turns = take_now(costs)
    if turns is not None:
        return _permits(prices, turns), None, loop_time()
    limit, turn = latest_of(prices)
    now = loop_time()
    early = tuple(line.rule.take_early(now, cost) for line, cost in costs)
    return _permits(prices, early), limit, turn


async def _ask(on_credit: OnCredit, last: LastTurn, deadline: float) -> OnCredit:
    """Ask the shared storage whether tokens are there now; a dry run never waits."""
    permits, limit, turn = on_credit
    shared, ask = last
    is_asked = False
    try:
        is_given, seconds = await ask(loop_time(), deadline)
        is_asked = True
    finally:
        if not is_asked:
            permits.give_back()
    then = loop_time() + seconds
    if is_given or (limit is not None and turn >= then):
        return on_credit
    return permits, shared, then


def costs_of(prices: list[Price]) -> Costs:
    """Return the queue and the cost of a request for each limit that it pays."""
    return [(each.limit._line, each.cost) for each in prices if each.has_turn]


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
    prices: list[Price], turns: tuple[Turn, ...], waited: float = 0.0
) -> Permits:
    taken, now = iter(turns), loop_time()
    return Permits(
        tuple(
            (each.limit, next(taken) if each.has_turn else _unasked(each, now))
            for each in prices
        ),
        waited,
    )


def _unasked(price: Price, now: float) -> Turn:
    """Take a turn that is not waited for."""
    limit, cost, _ = price
    rule = limit._line.rule
    return rule.take_early(now, cost) if cost > 0 else rule.take(now, 0.0)


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
