"""The time in which the turn of a request at a rate limit has to come."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from .._clock import NEAR, loop_time
from .errors import RateLimitError

if TYPE_CHECKING:
    from .._call.call import Call
    from .rate_limit import RateLimit


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
