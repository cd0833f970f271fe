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
    """Seconds from the start of the first request; None of the first request."""

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
    "circuit_breaker",
    "endpoint",
    "next_endpoint",
    "stale_connection",
    "token",
]
"""The reason for a wait."""

SENT_AGAIN: Final[frozenset[DelaySource | None]] = frozenset(
    {"stale_connection", "token"}
)
"""The reasons why a request is sent again within its attempt."""


class _RareFacts(NeverCopied):
    """The defaults of facts that few records have; an instance gets its own then."""

    __slots__ = ()

    began: float | None = None
    """The start of the attempt, where another request of the attempt came first."""

    calls_inside: CallsInside | None = None
    """The calls made inside an attempt of a function."""

    connection: ConnectionTimes | None = None
    """The times of the connection, where these are measured."""

    delay: float | None = None
    """Seconds waited after it; of a call, before its first request."""

    delay_source: DelaySource | None = None
    """The reason for the delay."""

    first_sent: float | None = None
    """When the attempt sent its first request, where that is not its start."""

    preview_length: int | None = None
    """How many characters of a text to keep of a body that is read by the transport."""

    race: Race | None = None
    """The part in a race of hedges; None where there was one request."""

    refusal: KeptCause | None = None
    """The error by which the caller's ``raise_for_status`` turned a response down."""

    request_preview: str | None = None
    """The first characters of a text that was sent."""

    routed_request: Request = None
    """The request on the way to its endpoint, where an endpoint was chosen."""

    sent_request: Request = None
    """The request that a decorator further in has sent instead, without a body."""

    sent_headers: Mapping[str, str] | None = None
    """The headers that aiohttp sent first, where the outcome lacks them."""

    upload: Upload = NO_BODY
    """How much of the request body was sent."""

    route: Route | None = None
    """The endpoint that was chosen; None without an endpoint group."""

    is_raced: bool = False
    """Whether a hedging client uses this record; another pass then gets another."""

    has_moved: bool = False
    """Whether it was sent again elsewhere, unseen by decorators further in."""

    view: Callable[[], Any] | None = None
    """A weak reference to the RequestLog of this record."""


class Record(_RareFacts):
    """The facts of a call, or of one request of it, up to now.

    Plain facts, which :mod:`.recorder` writes. They refer to no view of them but
    weakly, and a request does not refer to its call, so nothing here is a cycle.
    """

    request: Request
    """The request without its body; the call keeps the body until its end."""

    started: float
    """When it began, in seconds of the event loop's clock."""

    deadline: float | None
    """The time limit of this record alone, by the event loop's clock; None for none."""

    number: int | None
    """The number of the request in its call, from 1; None of the call itself."""

    outcome: Outcome

    is_settled: bool
    """Whether the outcome is final: later ones are ignored."""

    was_refused: bool
    """Whether a circuit breaker refused it, so that nothing was sent."""

    was_sent: bool
    """Whether a server may have seen it."""

    @property
    def begun_request(self) -> Request:
        """The request at the start, on the way to its endpoint if one was chosen."""
        return self.routed_request or self.request

    @property
    def shown_request(self) -> Request:
        """The request that logs show."""
        return self.begun_request

    @property
    def attempt_started(self) -> float:
        """The start of the attempt, which another request may have begun."""
        return self.started if self.began is None else self.began

    @property
    def sent_at(self) -> float:
        """The moment of sending, after the waits for places and turns."""
        sent = self.first_sent
        # What is sent again within an attempt waits for nothing.
        return self.started if sent is None or self.began is not None else sent

    @property
    def was_sent_again(self) -> bool:
        """Whether the attempt went on with a resend, which is no retry and no hedge."""
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
