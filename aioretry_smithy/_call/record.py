"""Hold what is known of a call, or of one request of it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from .._failures.kept_cause import NeverCopied
from .upload import NO_BODY

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .._failures.kept_cause import KeptCause
    from .connection_timings import ConnectionTimes
    from .kinds import Request
    from .outcome import Outcome
    from .route import Route
    from .upload import Upload


_MOST_CALLS: Final = 100


class CallsInside:
    """The first calls, in order, and the number of the others."""

    __slots__ = ("dropped", "kept")

    dropped: int
    """How many more there were than are kept."""

    def __init__(self) -> None:
        self.kept: list[Any] = []
        self.dropped = 0

    def add(self, call: Any) -> None:
        """Keep a call that begins, or count it."""
        if len(self.kept) < _MOST_CALLS:
            self.kept.append(call)
        else:
            self.dropped += 1


class Race:
    """The part of a request in a race of several that are sent for one answer."""

    __slots__ = ("after", "ended", "is_superseded")

    after: float | None
    """Seconds from the start of the first one; None of that one itself."""

    ended: float
    """When the last of them was over, for the record of the call; else long ago."""

    is_superseded: bool
    """Whether it was given up because another one had a good answer."""

    def __init__(self, after: float | None = None, ended: float = -math.inf) -> None:
        self.after = after
        self.ended = ended
        self.is_superseded = False


DelaySource: TypeAlias = Literal[
    "backoff",
    "retry_after",
    "rate_limit",
    "endpoint",
    "next_endpoint",
    "stale_connection",
    "token",
]
"""The reason for a wait."""

SENT_AGAIN: Final[frozenset[DelaySource | None]] = frozenset(
    {"stale_connection", "token"}
)
"""The reasons of those that the same attempt goes on after."""


class _RareFacts(NeverCopied):
    """The defaults of facts that few records have; an instance gets its own then."""

    __slots__ = ()

    began: float | None = None
    """When its attempt began, where another request of that went before."""

    calls_inside: CallsInside | None = None
    """The calls of which it is made, if it is of a function."""

    connection: ConnectionTimes | None = None
    """What it waited for before it was on the wire, where that is timed."""

    delay: float | None = None
    """Seconds waited after it; of a call, before its first request."""

    delay_source: DelaySource | None = None
    """The reason for the delay."""

    first_sent: float | None = None
    """When the first request of its attempt was sent, where its time is cut."""

    race: Race | None = None
    """None where there was just one request."""

    refusal: KeptCause | None = None
    """The error by which the caller's ``raise_for_status`` turned a response down."""

    request_preview: str | None = None
    """The first characters of a text that was sent."""

    routed_request: Request = None
    """The request that it began with, where one of several servers was chosen for it.
    """

    sent_request: Request = None
    """The request as it was sent, without its body, where that is another one.

    A decorator further in has made it of what the record began with.
    """

    sent_headers: Mapping[str, str] | None = None
    """The headers that aiohttp sent first, where its outcome does not have them."""

    upload: Upload = NO_BODY
    """What was sent of its body."""

    route: Route | None = None
    """Where it goes, where that is one of several servers."""

    is_raced: bool = False
    """Whether a pass through a hedging client has it, so that another needs its own."""

    has_moved: bool = False
    """Whether it went on to another server than the decorators further in know of."""

    view: Callable[[], Any] | None = None
    """Finds the log that shows this, as long as somebody keeps that."""


class Record(_RareFacts):
    """The facts of a call, or of one request of it, up to now.

    Plain facts, which :mod:`.recorder` writes. They refer to no view of them but
    weakly, and a request does not refer to its call, so nothing here is a cycle.
    """

    request: Request
    """The request, without its body; of a call with it, as long as that lasts."""

    started: float
    """When it began, in seconds of the event loop's clock."""

    deadline: float | None
    """When its own time runs out, by that clock."""

    number: int | None
    """Which request of the call it is, from 1; None of the call itself."""

    outcome: Outcome

    is_settled: bool
    """Whether it was handed on: what a decorator left running changes nothing."""

    was_refused: bool
    """Whether a circuit breaker refused it, so that nothing was sent."""

    was_sent: bool
    """Whether a server may have seen it."""

    @property
    def begun_request(self) -> Request:
        """The request that it began with, on its way to the server that was chosen."""
        return self.routed_request or self.request

    @property
    def shown_request(self) -> Request:
        """The request that logs show."""
        return self.begun_request

    @property
    def attempt_started(self) -> float:
        """When its attempt began, perhaps with another request."""
        return self.started if self.began is None else self.began

    @property
    def was_sent_again(self) -> bool:
        """Whether another request followed in its attempt: no retry of it, no hedge."""
        return self.delay_source in SENT_AGAIN

    @property
    def is_in_race(self) -> bool:
        """Whether a pass through a hedging client has sent it, first or as a hedge."""
        return self.is_raced or self.race is not None

    @property
    def is_hedge(self) -> bool:
        """Whether it was sent beside another request."""
        return self.race is not None and self.race.after is not None

    @property
    def ended_well(self) -> bool:
        """Whether there was no failure and no status of 400 or above.

        What was given up because another request had a good answer did not fail; an
        answer that the caller's ``raise_for_status`` turned down did.
        """
        outcome = self.outcome
        if self.refusal is not None:
            return False
        if outcome.cause is not None:
            return self.race is not None and self.race.is_superseded
        # A function that has returned has no status.
        if outcome.status is None:
            return outcome.ended is not None
        return outcome.status < 400
