"""Define what lets requests out at a rate: a rule that says when, and their turns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    import aiohttp

    from .._failures.raised_answers import RaisedAnswer

    Reply: TypeAlias = aiohttp.ClientResponse | RaisedAnswer
    """The answer of a server, as a response or as an exception raised for it."""


class RatePermit(Protocol):
    """Learns how a request ended that a limit has let out."""

    def learn(self, answer: Reply) -> None:
        """Learn from an answer."""

    def lose(self) -> None:
        """Note that there was no answer."""


class Turn(RatePermit, Protocol):
    """The permit of a request that may be taken back, while it is not sent."""

    def give_back(self) -> None:
        """Take it back, for the requests in line behind it."""


class Rule(RatePermit, Protocol):
    """Says when a request may go out, and counts those that did.

    It is also the permit of requests that it need not know one by one.
    """

    wake: Callable[[], None]
    """Called where a turn comes sooner than the rule has said."""

    def turn(self, now: float, cost: float) -> float:
        """Return when a request may go out that has no other before it."""
        ...

    def next_turn(self, now: float, waiting: int, patience: float) -> float:
        """Return when the first of so many goes out that wait, now that it may.

        *patience* are the seconds after which one of them gives up.
        """
        ...

    def forecast(self, now: float, cost: float, ahead: float) -> float:
        """Return a time before which a request surely does not go out.

        *ahead* is what the requests cost that wait before it.
        """
        ...

    def take(self, now: float, cost: float) -> Turn:
        """Let a request go out."""
        ...

    def take_early(self, now: float, cost: float) -> Turn:
        """Let a request go out before its turn, as one that does not wait for it."""
        ...

    def try_take(self, now: float) -> RatePermit | None:
        """Let a request of cost 1 go out, if its turn has come."""
        ...
