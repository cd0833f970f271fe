"""Refuse a request that a limit does not let out in time, and say which time."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

from .._clock import NEAR, loop_time
from .._errors import LimitedRequestError, bad_argument, is_finite

if TYPE_CHECKING:
    from .._call.call import Call
    from .concurrency_limit import ConcurrencyLimit
    from .rate_limit import RateLimit


_KEPT_OF_LIMIT: Final = {"limit": ("name", "limit", "in_flight", "pending")}
_KEPT_OF_RATE: Final = {"limit": ("pending",)}


class ConcurrencyLimitError(LimitedRequestError):
    """Raised instead of sending a request: the concurrency limit stayed full too long.

    No circuit breaker and no retry limiter counts it. Any method may be sent again.

    It may be pickled; it then has a snapshot of the limit, with its ``name``,
    ``limit``, ``in_flight`` and ``pending``.

    Args:
        limit: The limit that left no place.
        waited: Seconds spent in the queue.
        pending: Requests in the queue when this one left it.
    """

    limit: ConcurrencyLimit
    """The limit that left no place."""

    waited: float
    """Seconds spent in the queue; 0.0 if the queue was full."""

    pending: int
    """Length of the queue when the request left it."""

    is_of_endpoint: bool = False
    """Whether the limit of a single endpoint refused; a different one may serve."""

    _snapshots = _KEPT_OF_LIMIT

    def __init__(self, limit: ConcurrencyLimit, waited: float, pending: int) -> None:
        super().__init__(limit, waited, pending)
        self.limit = limit
        self.waited = waited
        self.pending = pending

    def __str__(self) -> str:
        name, pending = self.limit.name, self.pending
        where = f"no place in {self.waited:.3f} s, pending: {pending}"
        return f"concurrency limit {name!r}: {where}"


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

    _snapshots = _KEPT_OF_RATE

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


def check_timeout(seconds: float | None) -> None:
    """Refuse what is neither None nor the seconds of a longest wait."""
    if seconds is not None and not (is_finite(seconds) and seconds >= 0):
        raise bad_argument("timeout", seconds, "finite and >= 0, or None")


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
