"""Count tokens in a bucket, and correct what a request has cost."""

from __future__ import annotations

import math
import weakref
from itertools import count
from typing import TYPE_CHECKING

from .._clock import NEAR, loop_time

if TYPE_CHECKING:
    from collections.abc import Callable

    from .rule import Reply


class _Account:
    """Keeps what a request has cost, and how much of it may be given back.

    Where the bucket would have been full in the meantime with the tokens that come
    back, it would have lost them: they are not given back a second time.
    """

    __slots__ = ("cost", "credited", "least", "number", "reference")

    reference: weakref.ref[Charge]

    def __init__(self, number: int, cost: float) -> None:
        self.number = number
        self.cost = cost
        # What was given back of it; negative for a debt.
        self.credited = 0.0
        # The least room that was left in the bucket since, with what was given back.
        self.least = math.inf


class Bucket:
    """A token bucket, known by the time at which it will be full.

    Args:
        interval: Seconds in which a token comes.
        burst: The tokens that it holds when it is full.
    """

    __slots__ = (
        "_accounts",
        "_full_at",
        "_gone",
        "_indebted",
        "_interval",
        "_numbers",
        "_slack",
        "burst",
        "wake",
    )

    burst: float

    wake: Callable[[], None]
    """Called where tokens come back."""

    def __init__(self, interval: float, burst: float) -> None:
        self.burst = burst
        self._interval = interval
        self._slack = (burst - 1) * interval
        self._full_at = -math.inf
        self._numbers = count()
        # Those that may get tokens back, the oldest first; each has at most as much
        # room left as the next one. Those that were charged more later are apart.
        self._accounts: dict[int, _Account] = {}
        self._indebted: dict[int, _Account] = {}
        # Who has gone is removed later: that may be at any moment, such as in a loop
        # over them.
        self._gone: list[int] = []

    def turn(self, now: float, cost: float) -> float:
        """Return when a request may go out that has no other before it."""
        return self.forecast(now, cost, 0.0)

    def next_turn(self, now: float, waiting: int, patience: float) -> float:
        """Return that it is now: those that wait have a turn each."""
        return now

    def forecast(self, now: float, cost: float, ahead: float) -> float:
        """Return when there are tokens for a request, and for those *ahead* of it."""
        full_at = max(self._full_at, now) + ahead * self._interval
        return max(now, full_at - (self.burst - cost) * self._interval)

    def take(self, now: float, cost: float) -> Charge:
        """Let a request go out; what it has cost may be corrected later."""
        self._spend(now, cost)
        number = next(self._numbers)
        account = _Account(number, cost)
        charge = Charge(self, account)
        gone = self._gone
        account.reference = weakref.ref(charge, lambda _: gone.append(number))
        self._accounts[number] = account
        return charge

    take_early = take

    def try_take(self, now: float) -> Bucket | None:
        """Let a request of cost 1 go out, if its turn has come."""
        if max(self._full_at, now) - self._slack > now + NEAR:
            return None
        self._spend(now, 1.0)
        return self

    def learn(self, answer: Reply) -> None:
        """Learn nothing: the rate stays as it is."""

    def lose(self) -> None:
        """Do nothing: what was taken stays taken."""

    def settle(self, account: _Account, figure: float) -> None:
        """Correct what a request has cost; the bucket may be in debt then."""
        now = loop_time()
        self._note_room(now)
        more = account.cost - figure - account.credited
        if more < 0:
            self._spend(now, -more)
            # So much may come back again.
            account.least -= more
            self._accounts.pop(account.number, None)
            self._indebted[account.number] = account
        else:
            more = min(more, account.least)
            self._full_at -= more * self._interval
        account.credited += more
        if more > 0:
            self._lessen(account, more)
            self.wake()

    def _spend(self, now: float, tokens: float) -> None:
        if self._accounts or self._indebted:
            self._note_room(now)
        self._full_at = max(self._full_at, now) + tokens * self._interval

    def _note_room(self, now: float) -> None:
        """Note how much room the bucket has, before there is more."""
        accounts, indebted, gone = self._accounts, self._indebted, self._gone
        while gone:
            number = gone.pop()
            accounts.pop(number, None)
            indebted.pop(number, None)
        room = max(0.0, self._full_at - now) / self._interval
        for each in indebted.values():
            each.least = min(each.least, room)
        for each in reversed(accounts.values()):
            if each.least <= room:
                break
            each.least = room
        if not room:
            accounts.clear()
            indebted.clear()

    def _lessen(self, account: _Account, tokens: float) -> None:
        """Reduce what other charges may refund, by tokens that came back."""
        number, left = account.number, account.least - tokens
        least = math.inf
        for each in reversed(self._accounts.values()):
            later = each.number > number
            room = max(0.0, each.least - tokens) if later else min(each.least, left)
            # A debt that comes back takes more off those that came after it.
            each.least = least = min(least, room)
        for each in self._indebted.values():
            later = each.number > number
            room = max(0.0, each.least - tokens) if later else min(each.least, left)
            each.least = room
        account.least = left


class Charge:
    """The turn of a request at a token bucket, and what it was charged for."""

    __slots__ = ("__weakref__", "_account", "_bucket")

    def __init__(self, bucket: Bucket, account: _Account) -> None:
        self._bucket = bucket
        self._account = account

    def learn(self, answer: Reply) -> None:
        """Learn nothing: the rate stays as it is."""

    def lose(self) -> None:
        """Do nothing: the estimate stands."""

    def settle(self, figure: float) -> None:
        """Let the request have cost *figure* in place of what was estimated."""
        self._bucket.settle(self._account, figure)

    def give_back(self) -> None:
        """Let the request have cost nothing, because it was not sent."""
        self.settle(0.0)
