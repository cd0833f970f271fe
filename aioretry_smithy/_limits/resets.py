"""Keep requests back until the time that a server has named."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from .._call.response_facts import headers_of
from .._clock import NEAR, loop_time
from .rate_headers import seconds_to_reset
from .scatter import Scatter

if TYPE_CHECKING:
    from collections.abc import Callable

    from .rule import Reply


_NOTHING: Final = -math.inf, -math.inf


class Resets:
    """Keep requests back until the time that a server named, or for the longest wait.

    Then those that wait go out one by one, within a fifth of the wait, or a second.

    After a wait that was cut one request goes out, the probe, and the others wait for
    what it learns: for the longest wait once more, then another probe goes out. What a
    request costs does not matter: the server counts.

    Args:
        max_wait: The longest wait in seconds.
    """

    __slots__ = (
        "_is_probed",
        "_max_wait",
        "_probe_at",
        "_reset_at",
        "_round",
        "_scatter",
        "_told",
        "wake",
    )

    wake: Callable[[], None]
    """Called where requests may go out sooner than it has said."""

    def __init__(self, max_wait: float) -> None:
        self._max_wait = max_wait
        # Not infinite until the answer to a probe says more.
        self._reset_at = self._probe_at = -math.inf
        self._is_probed = False
        # The same of what others were told while the probe was out.
        self._told = _NOTHING
        self._scatter = Scatter()
        # The number that all probes have until one of them is answered.
        self._round = 1

    def turn(self, now: float, cost: float) -> float:
        """Return when a request may go out unasked."""
        return max(now, self._reset_at, self._probe_at)

    def next_turn(self, now: float, waiting: int, patience: float) -> float:
        """Return when the first of those that wait goes out, now that it may."""
        return self._scatter.next_turn(now, waiting, patience)

    def forecast(self, now: float, cost: float, ahead: float) -> float:
        """Return the time before which no request goes out for sure."""
        # The probe may be answered at any moment.
        return now if self._is_probed else self.turn(now, cost)

    def take(self, now: float, cost: float) -> Resets | Probe:
        """Let a request go out, which may be the probe."""
        self._scatter.let_go()
        if self._probe_at == -math.inf:
            # The server does the counting.
            return self
        self._probe_at = now + self._max_wait
        if not self._is_probed:
            self._is_probed, self._told = True, _NOTHING
        return Probe(self, self._round)

    def take_early(self, now: float, cost: float) -> Resets:
        """Let a request go out that finds nothing out: it does not wait."""
        return self

    def try_take(self, now: float) -> Resets | Probe | None:
        """Let a request go out, if it need not wait."""
        return self.take(now, 1.0) if self.turn(now, 1.0) <= now + NEAR else None

    def learn(self, answer: Reply) -> None:
        """Let no request go out where an answer says that nothing is left."""
        seconds = seconds_to_reset(answer.status, headers_of(answer))
        if seconds is not None:
            self.close(loop_time(), seconds)

    def lose(self) -> None:
        """Do nothing: only the answers of servers count."""

    def give_back(self) -> None:
        """Do nothing: the server counts what was sent."""

    def close(self, now: float, seconds: float) -> None:
        """Let no request go out for some seconds; earlier calls hold too."""
        waits = min(seconds, self._max_wait)
        then, reset_at, probe_at = now + waits, *self._told
        if waits < seconds:
            self._probe_at = max(self._probe_at, then)
            self._told = reset_at, max(probe_at, then)
        else:
            self._reset_at = max(self._reset_at, then)
            self._told = max(reset_at, then), probe_at
        self._scatter.begin(then, waits)

    def open(self, probed: int) -> bool:
        """Let all go out, but for what others were told since the probe went out.

        Return False if a probe has been answered before.
        """
        if probed != self._round:
            return False
        self._round += 1
        self._reset_at, self._probe_at = self._told
        self._is_probed = False
        if self._told == _NOTHING:
            self._scatter.begin(loop_time(), self._max_wait)
        return True

    def lose_probe(self, probed: int) -> None:
        """Let another probe go out, unless one has been answered before."""
        if probed == self._round:
            self._probe_at, self._is_probed = loop_time(), False
            self.wake()


@dataclass(frozen=True, slots=True, eq=False)
class Probe:
    """The permit of the one request that goes out after a wait that was cut."""

    _resets: Resets

    _round: int
    """The round that it is a probe of."""

    def learn(self, answer: Reply) -> None:
        """Learn from the answer anew, and let the others go as it says."""
        is_open = self._resets.open(self._round)
        self._resets.learn(answer)
        if is_open:
            self._resets.wake()

    def lose(self) -> None:
        """Let the next request find out."""
        self._resets.lose_probe(self._round)

    give_back = lose
