"""Limit the rate at which requests go out: a bucket of tokens, and what they cost."""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple, TypeAlias

from .. import _checks as check
from .._clock import NEAR, loop_time
from .._errors import LimitedRequestError, bad_argument, is_finite
from .._failures.failure import judge
from .._text.printable import name_of
from .._values import Shared
from .line import Line, RatePermit
from .resets import Resets

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import aiohttp

    from .._context.context import ClientRequestContext
    from .._log.request_log import RequestLog
    from .._request.request import HttpRequest

    Cost: TypeAlias = Callable[[ClientRequestContext, HttpRequest], float]
    Actual: TypeAlias = Callable[[RequestLog, bytes | None], float | None]
    SharedTurn: TypeAlias = Callable[[float, float], Awaitable["Admission"]]
    """Takes the latest time for a turn, and a deadline before which it has to be."""


_CHARGES: Final = "_aioretry_smithy_charges"
"""The attribute of a response with the charges of limits, by id of the limit."""


def cost_of(
    cost: Cost | None, ctx: ClientRequestContext, request: HttpRequest
) -> float:
    """Return the cost of a request: 1 without a cost function.

    Raises:
        ValueError: It is no number that is finite and >= 0.
        Exception: The function has raised it; a mistake of the caller's, as is a bad
            number: no other attempt is made, and no circuit breaker counts it.
    """
    if cost is None:
        return 1.0
    try:
        figure = cost(ctx, request)
        check.not_negative("cost", figure)
    except Exception as error:
        judge(error).raised_by_caller = True
        raise
    return figure


def keep_charge(
    response: aiohttp.ClientResponse, limit: object, charge: object
) -> None:
    """Store a charge for :func:`charge_of`, while the response is alive."""
    # A response of a user's class may refuse to be written on.
    attributes = getattr(response, "__dict__", None)
    if attributes is not None:
        # What a decorator has kept, and returns again, has that of the last request.
        attributes.setdefault(_CHARGES, {})[id(limit)] = limit, charge


def charge_of(response: object, limit: object) -> object:
    """Return what a limit has charged for the attempt that brought a response."""
    kept = getattr(response, "__dict__", {}).get(_CHARGES, {})
    # A limit that is kept here has its id for itself.
    return kept.get(id(limit), (None, None))[1]


class Bucket(RatePermit):
    """A token bucket, known by the time at which it will be full.

    Args:
        interval: Seconds in which a token comes.
        burst: The tokens that it holds when it is full.
    """

    __slots__ = ("_full_at", "_interval", "_slack", "burst", "wake")

    burst: float

    wake: Callable[[], None]
    """Called where tokens come back."""

    def __init__(self, interval: float, burst: float) -> None:
        self.burst = burst
        self._interval = interval
        self._slack = (burst - 1) * interval
        self._full_at = -math.inf

    def turn(self, now: float, cost: float) -> float:
        """Return when a request at the head of the queue may go out."""
        return self.forecast(now, cost, 0.0)

    def next_turn(self, now: float, waiting: int, patience: float) -> float:
        """Return *now*: in a bucket each waiting request has its own time."""
        return now

    def forecast(self, now: float, cost: float, ahead: float) -> float:
        """Return when there are tokens for a request, and for the requests *ahead*."""
        full_at = max(self._full_at, now) + ahead * self._interval
        return max(now, full_at - (self.burst - cost) * self._interval)

    def take(self, now: float, cost: float) -> Charge:
        """Take tokens; the charge may be corrected later."""
        self._spend(now, cost)
        return Charge(self, cost)

    take_early = take

    def try_take(self, now: float) -> Bucket | None:
        """Let a request of cost 1 go out, if its turn has come."""
        if max(self._full_at, now) - self._slack > now + NEAR:
            return None
        self._spend(now, 1.0)
        return self

    def refund(self, tokens: float) -> None:
        """Take tokens back, or some more where the figure is negative."""
        if tokens < 0:
            # It may be in debt then.
            self._spend(loop_time(), -tokens)
        elif tokens > 0:
            # A full bucket holds no more: what is over is lost with the next request.
            self._full_at -= tokens * self._interval
            self.wake()

    def _spend(self, now: float, tokens: float) -> None:
        self._full_at = max(self._full_at, now) + tokens * self._interval


class Charge(RatePermit):
    """The turn of a request at a token bucket, and what it was charged for."""

    __slots__ = ("_bucket", "_paid")

    def __init__(self, bucket: Bucket, cost: float) -> None:
        self._bucket = bucket
        self._paid = cost

    def settle(self, figure: float) -> None:
        """Let the request have cost *figure* in place of what was estimated."""
        paid, self._paid = self._paid, figure
        self._bucket.refund(paid - figure)

    def give_back(self) -> None:
        """Refund the tokens of a request that was not sent."""
        self.settle(0.0)


_logger = logging.getLogger("aioretry_smithy")

_MAX_WAIT = 60.0

_MOST_BURSTS = 10
"""The most that a request can have cost in the end, in times of the burst."""


class Admission(NamedTuple):
    """The outcome of a wait for a turn that a storage gives."""

    is_given: bool
    """Whether the request may go out."""

    seconds: float
    """Seconds of waiting; if refused, seconds until tokens may be available."""


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


class RateLimit(Shared):
    """Limits the rate of requests, or of what they cost, with a token bucket.

    In any *t* seconds there are never more than ``burst + requests * t / per``. One
    limit may serve many clients, tasks and sessions of one event loop, but not threads.
    A copy is the same object.

    A request costs 1, or what *cost* says. Where that is an estimate, *actual* or
    :meth:`settle` corrects it after the answer: what was too much comes back, and what
    was too little is a debt, which those that come next wait for.

    Args:
        requests: How many may go out in *per* seconds, finite and > 0.
        per: Seconds, finite and > 0.
        burst: How many may go out at once after a pause, finite and >= 1; by default
            *requests*, or 1 if that is less.
        cost: ``cost(ctx, request)`` returns what a request costs, finite and >= 0, such
            as an estimate of its tokens; *requests* and *burst* are of the same unit. A
            request that costs nothing goes out at once, one that costs more than
            *burst* raises a :class:`RateLimitError` that is final. None: each costs 1.
        actual: ``actual(log, content)`` returns what an attempt has cost in the end, or
            None to leave it at the estimate. It is asked for every answer, with the
            whole body where something buffers it, such as ``buffer_response=True``,
            else at the headers with None. What it raises is logged.

    Raises:
        ValueError: An argument is not as described.

    >>> RateLimit(100, per=60.0, burst=10)
    RateLimit(100, 60.0, burst=10)
    """

    _line: Line
    """The queue of waiting requests, with its rule."""

    _is_shared: ClassVar[bool] = False
    """Whether a storage gives the turns, which takes a question and no turn back."""

    _shared_turn: Callable[[ClientRequestContext, HttpRequest], SharedTurn]
    """Returns what waits for such a turn; raises what is for good, before any wait."""

    _cost: Cost | None = None

    _actual: Actual | None = None

    def __init__(
        self,
        requests: float,
        per: float = 1.0,
        *,
        burst: float | None = None,
        cost: Cost | None = None,
        actual: Actual | None = None,
    ) -> None:
        check.positive("requests", requests)
        check.positive("per", per)
        size = max(1, requests) if burst is None else burst
        if not is_finite(size) or size < 1:
            raise bad_argument("burst", burst, "finite and >= 1, or None")
        if not is_finite(size * (per / requests)):
            # By a clock no turn would ever come, or each at once.
            raise bad_argument("per", per, "burst * per / requests finite")
        check.function("cost", cost, "the context and the request")
        check.function("actual", actual, "the log and the content")
        self._cost, self._actual = cost, actual
        self._burst = size
        given = "" if burst is None else f", burst={burst!r}"
        for name, function in ("cost", cost), ("actual", actual):
            given += "" if function is None else f", {name}={name_of(function)}"
        self._description = f"{type(self).__name__}({requests!r}, {per!r}{given})"
        self._line = Line(Bucket(per / requests, size))

    @staticmethod
    def from_headers(*, max_wait: float = _MAX_WAIT) -> RateLimit:
        """Return a limit that follows the headers in which a server reports a limit.

        When nothing is left, requests wait for the reset, and then all of them go out,
        in their order and scattered: over a fifth of the wait, but no more than a
        second. A longer wait is cut to *max_wait*. Then one request goes out, and the
        others wait for what its answer says; if it fails, is cancelled, or has no
        answer after *max_wait*, the next one goes out. It reads

        - ``RateLimit`` and ``RateLimit-Policy`` of the IETF's draft, such as
          ``"default";r=0;t=30``: nothing is left for 30 s. Of several policies with
          nothing left the longest reset counts.
        - ``X-RateLimit-Remaining`` with ``X-RateLimit-Reset``, and the same with
          ``-Requests`` or ``-Tokens`` behind it, as servers of language models send
          them. A reset is a number of seconds, a Unix time where it is above 10^9, a
          duration such as ``6m0s`` or ``120ms``, or a date.
        - ``Retry-After`` of a 429 or a 403, which comes before the others.

        Take one for each host, with
        :meth:`RateLimitingClient.new_per_host_decorator`.

        Args:
            max_wait: The longest wait for a reset in seconds, finite and > 0.

        Raises:
            ValueError: *max_wait* is not as described.

        >>> def limit(key):
        ...     return RateLimit.from_headers()
        >>> decorator = RateLimitingClient.new_per_host_decorator(limit)
        """
        return _Learned(max_wait)

    @property
    def pending(self) -> int:
        """How many requests wait for their turn."""
        return len(self._line)

    def settle(self, response: aiohttp.ClientResponse, actual: float) -> None:
        """Correct what the attempt has cost that a response came from.

        Where it is called more than once, or *actual* is asked too, the last figure
        counts. What was too much comes back, up to a full bucket; what was too little
        is a debt. More than ten times the burst counts as
        that, with a warning: a server that reports nonsense must not close the limit.

        Args:
            response: The response.
            actual: What the attempt has cost in the end, finite and >= 0.

        Raises:
            ValueError: *actual* is not as described, the response did not come from
                this limit, or the limit has neither ``cost`` nor ``actual``.

        >>> limit = RateLimit(90_000, per=60.0, cost=lambda ctx, request: 2_000)
        >>> async def ask(session, question):
        ...     async with session.post("/chat", json=question) as response:
        ...         answer = await response.json()
        ...         limit.settle(response, answer["usage"]["total_tokens"])
        ...         return answer
        """
        if self._cost is None and self._actual is None:
            raise bad_argument("limit", self, "a limit with cost or actual")
        check.not_negative("actual", actual)
        charge = charge_of(response, self)
        if not isinstance(charge, Charge):
            raise bad_argument(
                "response", response, "a response that passed this limit"
            )
        self._settle(charge, actual)

    def __repr__(self) -> str:
        return self._description

    @property
    def _is_plain(self) -> bool:
        """Whether each request costs 1, and nothing more is to be known of it."""
        return self._cost is None and self._actual is None and not self._is_shared

    def _settle(self, charge: Charge, actual: float) -> None:
        most = _MOST_BURSTS * self._burst
        if actual > most:
            words = "%r: a request has cost %s, which counts as %s"
            _logger.warning(words, self, actual, most)
        charge.settle(min(actual, most))


class _Learned(RateLimit):
    def __init__(self, max_wait: float) -> None:
        check.positive("max_wait", max_wait)
        given = "" if max_wait == _MAX_WAIT else f"max_wait={max_wait!r}"
        self._description = f"RateLimit.from_headers({given})"
        # Only the server knows.
        self._burst = math.inf
        self._line = Line(Resets(max_wait))
