"""Hold the state of a call: what its requests share, and how it ends."""

from __future__ import annotations

import math
import time
import weakref
from typing import TYPE_CHECKING, Any

from .._clock import wall_clock_at
from .defaults import OF_ALL, Rarely
from .kept_requests import MOST_KEPT
from .outcome import PENDING, Outcome
from .record import CallsInside, Record
from .resources import CallResources

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Mapping, Sequence

    import aiohttp

    from .._masking.mask import Mask
    from .defaults import CallDefaults, Care
    from .kept_requests import DroppedRequests
    from .kinds import Request
    from .record import DelaySource
    from .stamps import IdempotencyKey


class Call(Rarely, Record):
    """The state of one call, from its beginning to the end of its body.

    It is the record of the call too, and of its one request where nothing retries; so
    it can be asked for what an attempt has.

    Args:
        to_send: The request of the caller.
        loop: The event loop.
        timeout: Seconds that it may take; None for no limit.
        defaults: What it has in common with others.
        session: The session; None of a function.
        care: How much care it wants.
    """

    __slots__ = (
        "attempt_began",
        "care",
        "defaults",
        "is_over",
        "loop",
        "machine_clock",
        "resources",
        "sent",
        "session",
        "to_send",
    )

    to_send: Request
    """The request of the caller, with its body as long as somebody keeps the call."""

    attempt_began: float | None
    """When its first attempt began, as long as the call itself has the facts of that.

    Most calls have one attempt, and nobody looks at it: then none is made.
    """

    care: Care
    """How much care it wants: none, of its arguments, or of all."""

    deadline: float | None
    """When the time of the call runs out, by the loop's clock."""

    defaults: CallDefaults
    """What it has in common with others."""

    is_over: bool
    """Whether the caller has the response or the exception."""

    loop: asyncio.AbstractEventLoop

    machine_clock: float
    """The time of day at its start, by the clock of the machine."""

    resources: CallResources | None
    """What needs care, if there is anything."""

    sent: list[Sent] | tuple[()]
    """Its requests, in order; none where nothing retries."""

    session: aiohttp.ClientSession | None
    """The session, as long as the call lasts."""

    def __init__(
        self,
        to_send: Request,
        loop: asyncio.AbstractEventLoop,
        timeout: float | None,
        defaults: CallDefaults,
        session: aiohttp.ClientSession | None = None,
        care: Care = OF_ALL,
    ) -> None:
        self.to_send = to_send
        self.loop = loop
        self.started: float = loop.time()
        self.deadline = None if timeout is None else self.started + timeout
        self.machine_clock = time.time()
        self.defaults = defaults
        self.session = session
        self.outcome: Outcome = PENDING
        self.care = care
        self.is_over = self.is_settled = self.was_refused = self.was_sent = False
        self.request: Request = None
        self.resources = self.attempt_began = None
        self.sent = ()

    @property
    def mask(self) -> Mask:
        """The mask that hides secrets in the views of the call."""
        return self.defaults.mask if self.own_mask is None else self.own_mask

    @property
    def default_headers(self) -> Mapping[str, str] | None:
        """The session's headers, as they were sent first; None of a function."""
        own = self.own_headers
        return self.defaults.headers if own is None else own

    @property
    def wall_clock(self) -> float:
        """The time of day at its start, which a virtual clock moves."""
        return wall_clock_at(self.loop, self.started, self.machine_clock)

    @property
    def epoch(self) -> tuple[float, float]:
        """When the outermost call around began: by the wall clock, and the loop's.

        All of them count from there, though the machine's clock may be set meanwhile.
        """
        return self.outer_epoch or (self.wall_clock, self.started)

    @property
    def counted_request(self) -> Request:
        """The request of the caller."""
        return self.to_send

    @property
    def begun_request(self) -> Request:
        """The request without its body, made when it is asked for."""
        request = self.request
        if request is None:
            request = self.request = self.to_send.without_body()
        return request

    @property
    def record(self) -> Record:
        """The call itself, where nothing makes attempts."""
        return self

    @property
    def key(self) -> IdempotencyKey | None:
        """The key by which a server recognises its request; None if nobody made one."""
        return None if self.resources is None else self.resources.key

    @property
    def requests(self) -> Sequence[Sent]:
        """Its requests, for those who look when it is over."""
        if self.attempt_began is not None:
            # It shares its outcome, since it ended with that.
            self.begin_first_request(self.attempt_began)
        return self.sent

    @property
    def first(self) -> Record:
        """The first request; the call where there is none."""
        requests = self.requests
        return requests[0] if requests else self

    @property
    def attempts_made(self) -> int:
        """How many attempts there were: requests, without those sent again."""
        return len(self.sent) + self.dropped.count - self.resends

    def sent_after(self, number: int | None) -> list[Sent]:
        """Return the requests after the one of that number; all for None."""
        return [each for each in self.sent if each.number > (number or 0)]

    @property
    def was_sent_at_all(self) -> bool:
        """Whether a server may have seen any request of it."""
        was_sent = self.was_sent or self.dropped.were_sent
        return was_sent or any(each.was_sent for each in self.sent)

    def deadline_of(self, record: Record) -> float | None:
        """Return when the time of a request runs out, never later than the call's."""
        outer, own = self.deadline, record.deadline
        if outer is None or (own is not None and own < outer):
            return own
        return outer

    def remaining(self, record: Record) -> float:
        """Return the seconds left: ``inf`` without a deadline, 0.0 after it."""
        deadline = self.deadline_of(record)
        return math.inf if deadline is None else max(0.0, deadline - self.loop.time())

    def move_deadline(self, deadline: float | None) -> None:
        """Set the deadline of the call, not beyond the attempt that it is made in."""
        self.aiohttp_keeps_time = False
        limits = (limit for limit in (deadline, self.cap) if limit is not None)
        self.deadline = min(limits, default=None)

    def begin_request(self, request: Request, timeout: float | None = None) -> Sent:
        """Begin another request, without a body here, with a time limit of its own."""
        started, sent, number = self.loop.time(), self.sent, 1
        deadline = None if timeout is None else started + timeout
        if sent:
            # Some before it may not be kept.
            number = sent[-1].number + 1
        else:
            sent = self.sent = []
        record = Sent(request, started, deadline, number)
        if not self.is_settled:
            # A decorator outside may begin anew after what looked like the end.
            self.outcome = PENDING
        self.care = OF_ALL
        sent.append(record)
        if len(sent) > MOST_KEPT:
            dropped = self.dropped.with_one_of(sent, self.outcome)
            self.dropped: DroppedRequests = dropped
        return record

    def begin_first_request(self, began: float) -> Sent:
        """Give the facts of the first attempt, which began then, to a request."""
        sent = Sent(self.begun_request, began, None, 1)
        self.attempt_began = None
        self.care, self.sent = OF_ALL, [sent]
        sent.outcome, sent.was_sent = self.outcome, self.was_sent
        sent.was_refused, sent.upload = self.was_refused, self.upload
        sent.sent_headers, sent.route = self.sent_headers, self.route
        sent.connection = self.connection
        if self.sent_request is not None:
            sent.sent_request = self.sent_request
        sent.is_settled = self.is_over
        return sent

    def surround(self, record: Record, inside: Call) -> None:
        """Let a call that begins be part of one of this call's records.

        Each hides what the other hides, for it is shown in the views of this one, and
        its failure is often that of the calls around it.
        """
        inside.around = weakref.ref(self)
        inside.outer_epoch = self.epoch
        if not inside.mask.covers(self.mask):
            inside.own_mask = inside.mask | self.mask
        call: Call | None = self
        while call is not None and not call.mask.covers(inside.mask):
            call.own_mask = call.mask | inside.mask
            call = call.around and call.around()
        if record.calls_inside is None:
            record.calls_inside = CallsInside()
        record.calls_inside.add(inside)

    def needs_care(self) -> CallResources:
        """Return the resources of the call, made where it had none."""
        if self.resources is None:
            self.resources = CallResources()
        return self.resources

    def wait_with(self, waiter: Callable[[], object]) -> None:
        """Call a function, once, when something of the call has ended."""
        self.care = OF_ALL
        self.waiters = (*self.waiters, waiter)

    def wake(self) -> None:
        """Call the waiters, because something has ended."""
        waiters = self.waiters
        self.waiters: Sequence[Callable[[], object]] = ()
        for waiter in waiters:
            waiter()


class Sent(Record):
    """One request of a call: sent, about to be sent, or refused before that."""

    __slots__ = ("count_header", "delay", "delay_source", "number")

    count_header: tuple[str, str] | None
    """The header with the number of attempts before, where the request has it not."""

    delay: float | None
    delay_source: DelaySource | None
    number: int

    def __init__(
        self, request: Request, started: float, deadline: float | None, number: int
    ) -> None:
        self.request: Request = request
        self.started = started
        self.deadline = deadline
        self.number = number
        self.outcome = PENDING
        self.is_settled = self.was_refused = self.was_sent = False
        self.count_header = self.delay = self.delay_source = None

    @property
    def begun_request(self) -> Request:
        """The request that it began with, with the count of attempts but no body."""
        if self.count_header is not None:
            self.request = self.request.with_header(*self.count_header)
            sent = self.sent_request
            if sent is not None:
                self.sent_request: Request = sent.with_header(*self.count_header)
            self.count_header = None
        return super().begun_request

    @property
    def shown_request(self) -> Request:
        """The request as it was sent, but for its body."""
        begun = self.begun_request
        return self.sent_request or begun


class Attempt:
    """One pass of a call through the clients inside the retrying one.

    Args:
        call: The call.
        request: What it sends, with its body.
        timeout: Seconds that it may take; None for no limit of its own.
        count_header: The header with the number of attempts before, where the sender is
            to add it.
    """

    __slots__ = ("context", "count_header", "cut", "number", "record", "to_send")

    count_header: tuple[str, str] | None
    """The header that the sender is to add."""

    number: int
    """Which attempt of the call it is, from 1."""

    to_send: Request
    """The request, with its body; without the :attr:`count_header`."""

    record: Sent
    """The request that counts; a hedge and a resend put another one here."""

    context: Callable[[], Any] | None
    """Finds the context of the attempt, as long as somebody keeps that."""

    cut: Any
    """What cuts a function at the deadline of the attempt."""

    @classmethod
    def of_call(cls, call: Call, began: float) -> Attempt:
        """Make the attempt that the call itself was up to now, since it began."""
        record = call.begin_first_request(began)
        call.outcome, call.was_sent, call.was_refused = PENDING, False, False
        if record.was_sent:
            call.has_begun_to_send = True
        attempt = cls.__new__(cls)
        attempt.number, attempt.to_send, attempt.record = 1, call.to_send, record
        attempt.context = attempt.count_header = attempt.cut = None
        return attempt

    def __init__(
        self,
        call: Call,
        request: Request,
        timeout: float | None = None,
        count_header: tuple[str, str] | None = None,
    ) -> None:
        # Most attempts send the very request that the caller made.
        kept = call.begun_request if request is call.to_send else request.without_body()
        self.record = record = call.begin_request(kept, timeout)
        self.number = record.number - call.resends
        self.to_send = request
        self.count_header = record.count_header = count_header
        self.context = self.cut = None

    @property
    def counted_request(self) -> Request:
        """The request with its body, and all that is sent with it."""
        if self.count_header is None:
            return self.to_send
        return self.to_send.with_header(*self.count_header)
