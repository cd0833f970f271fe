"""Hold what is known of a call, or of one request of it, and how many are kept."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar, get_args

from .._failures.kept_cause import KeptCause, NeverPickled

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from aiohttp.payload import Payload

    from .._request.request import Route
    from .outcome import Outcome, Request

    _Sent = TypeVar("_Sent", bound="Record")


SerializedJson: TypeAlias = "tuple[object, Callable[..., Payload], str | bytes]"
"""An object given as JSON, its payload class, and the serialized text."""


class Upload:
    """Counts the bytes of a request body that are sent, and keeps its JSON."""

    __slots__ = ("ended", "is_open", "json", "length", "outer", "shown", "writer")

    length: int | None
    """The bytes so far; None where no body was sent to count, as with a mock."""

    ended: float | None
    """When the last byte was sent, by the event loop's clock."""

    is_open: bool
    """Whether its request is being sent; an open upload counts the next body."""

    json: list[SerializedJson] | None
    """The serialized JSON of an open upload."""

    outer: object
    """What the context variable held before: an upload or none; None once closed."""

    shown: Any
    """The body shown to middlewares while the upload is open; None if not replaced."""

    writer: Any
    """aiohttp's writer of a body that leaves in one piece, while the upload is open."""

    def __init__(self, length: int | None = None, *, is_open: bool = True) -> None:
        self.length = length
        self.is_open = is_open
        self.ended = self.json = self.outer = self.shown = self.writer = None


NO_BODY: Final = Upload(0, is_open=False)
"""The upload of requests without a body. Nothing is written into it."""


_MOST_CALLS: Final = 100


class CallsInside:
    """The first calls, in order, and the number of the others."""

    __slots__ = ("dropped", "kept")

    dropped: int
    """The number of nested calls that were dropped."""

    def __init__(self) -> None:
        self.kept: list[Any] = []
        self.dropped = 0

    def add(self, call: Any) -> None:
        """Add a nested call to the list, or only count it if the list is full."""
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
    """The end of the last hedge, for the record of the call; else long ago."""

    is_superseded: bool
    """Whether the request was cancelled because a different hedge had a good answer."""

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


class Record(NeverPickled):
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

    is_final: bool
    """Whether the outcome is final: later ones are ignored."""

    was_refused: bool
    """Whether a circuit breaker refused the request."""

    was_sent: bool
    """Whether a server may have seen the request."""

    # What few records have: the class has the default, an instance a value.

    began: float | None = None
    """The start of the attempt, where another request of the attempt came first."""

    calls_inside: CallsInside | None = None
    """The calls made inside an attempt of a function."""

    connection: ConnectionTimes | None = None
    """The timings of the connection, if measured."""

    delay: float | None = None
    """Seconds waited after the request; of a call, before its first request."""

    delay_source: DelaySource | None = None
    """The reason for the delay."""

    first_sent: float | None = None
    """The send time of the first request, if later than the start of the attempt."""

    preview_length: int | None = None
    """How many characters of a text to keep of a body that is read by the transport."""

    race: Race | None = None
    """The role of the request among hedges; None without hedges."""

    status_error: KeptCause | None = None
    """The error by which the caller's ``raise_for_status`` turned a response down."""

    request_preview: str | None = None
    """The first characters of a text that was sent."""

    routed_request: Request = None
    """The request on the way to its endpoint, where an endpoint was chosen."""

    sent_request: Request = None
    """The request that a decorator further in has sent instead, without a body."""

    sent_headers: Mapping[str, str] | None = None
    """The headers of the first request sent by aiohttp, if missing in the outcome."""

    upload: Upload = NO_BODY
    """How much of the request body was sent."""

    route: Route | None = None
    """The endpoint that was chosen; None without an endpoint group."""

    is_raced: bool = False
    """Whether a hedging client uses the record; a second pass gets a new record."""

    endpoint_changed: bool = False
    """Whether the transport resent the request to a different endpoint."""

    log_ref: Callable[[], Any] | None = None
    """A weak reference to the RequestLog of this record."""

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
        """Whether the request is a hedge."""
        return self.race is not None and self.race.after is not None

    @property
    def ended_well(self) -> bool:
        """Whether there was no failure and no status of 400 or above.

        What was given up because another request had a good answer did not fail; an
        answer that the caller's ``raise_for_status`` turned down did.
        """
        outcome = self.outcome
        if self.status_error is not None:
            return False
        if outcome.cause is not None:
            return self.race is not None and self.race.is_superseded
        # A function that has returned has no status.
        if outcome.status is None:
            return outcome.ended is not None
        return outcome.status < 400


_KEPT: Final = 50
MOST_KEPT: Final = 2 * _KEPT
"""The number of kept requests of a call: half the first, half the last."""


@dataclass(frozen=True, slots=True)
class DroppedRequests:
    """The requests of a call that are not kept any more."""

    count: int = 0

    hedges: int = 0
    """The number of dropped requests that were hedges."""

    last_number: int = 0
    """The highest of their numbers."""

    were_sent: bool = False
    """Whether a server may have seen one of the dropped requests."""

    def may_be_sent_after(self, number: int) -> bool:
        """Say whether a dropped request after *number* may have been sent."""
        return self.were_sent and self.last_number > number

    def with_one_of(self, sent: list[_Sent], outcome: Outcome) -> DroppedRequests:
        """Drop the first request of the middle that is over.

        That with the *outcome* of the call is kept, and what is under way.
        """
        for place in range(_KEPT, len(sent) - _KEPT):
            record = sent[place]
            if record.outcome.ended is not None and record.outcome is not outcome:
                del sent[place]
                is_hedge = record.is_hedge and not record.was_sent_again
                return DroppedRequests(
                    self.count + 1,
                    self.hedges + is_hedge,
                    max(self.last_number, record.number or 0),
                    self.were_sent or record.was_sent,
                )
        return self


NONE_DROPPED: Final = DroppedRequests()


Part: TypeAlias = Literal["queued", "dns", "connect"]
"""A part of the wait for a connection."""

PARTS: Final[tuple[Part, ...]] = get_args(Part)


@dataclass(frozen=True, slots=True)
class ConnectionTimings:
    """The seconds that a request waited for a connection, by part.

    After redirects these are the sums of all hops. None stands for what did not happen.
    A wait that goes on, or that was cut, counts up to now, or up to then.

    >>> ConnectionTimings(queued=0.75, dns=None, connect=0.25, reused=False).waited
    1.0
    """

    queued: float | None
    """Seconds in the queue of the session's own connection pool."""

    dns: float | None
    """Seconds to resolve the name of the host."""

    connect: float | None
    """Seconds to connect, with the TLS handshake, but without :attr:`dns`."""

    reused: bool
    """Whether the connection was reused (after redirects, the last connection)."""

    @property
    def waited(self) -> float:
        """The sum of the seconds that the request waited."""
        return sum(filter(None, (self.queued, self.dns, self.connect)))


class ConnectionTimes:
    """Adds up the waits of one request, hop by hop, while it is sent."""

    __slots__ = ("_seconds", "_since", "began", "part", "reused")

    began: float
    """When the first wait began, by the event loop's clock."""

    part: Part | None
    """The part that goes on now."""

    reused: bool
    """Whether the last hop had a connection that was used before."""

    def __init__(self, now: float) -> None:
        self.began = self._since = now
        self.reused = False
        self.part = None
        self._seconds: dict[Part, float] = {}

    def wait_for(self, part: Part | None, now: float) -> None:
        """End the current wait, and begin the wait for the next part, if any.

        A request that waits has no connection yet.
        """
        self._seconds = self._up_to(now)
        self.part, self._since = part, now
        if part is not None:
            self.reused = False
            if not self._seconds:
                self.began = now

    def shown(self, now: float) -> ConnectionTimings:
        """Return the waits up to now."""
        queued, dns, connect = map(self._up_to(now).get, PARTS)
        return ConnectionTimings(queued, dns, connect, self.reused)

    def _up_to(self, now: float) -> dict[Part, float]:
        part, seconds = self.part, self._seconds
        if part is None:
            return seconds
        passed = max(0.0, now - self._since)
        return {**seconds, part: seconds.get(part, 0.0) + passed}
