"""Hold the state of a call: what its requests share, and how it ends."""

from __future__ import annotations

import math
import time
import weakref
from typing import TYPE_CHECKING, Any, Self

from .._clock import wall_clock_at
from .._failures.kept_cause import CallBound
from .defaults import RareCallFacts
from .kept_requests import MOST_KEPT
from .outcome import PENDING, Outcome
from .record import CallsInside, Record
from .resources import CallResources

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Mapping, Sequence

    import aiohttp

    from .._masking.mask import Mask
    from .defaults import CallDefaults
    from .kept_requests import DroppedRequests
    from .kinds import Cut, Request
    from .record import DelaySource
    from .stamps import IdempotencyKey


class Context(CallBound):
    """The state that a call and an attempt of it have in common."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def call(self) -> Call:
            """The call; of a call itself, the very same."""

        @property
        def record(self) -> Record:
            """The facts of the call, or of the request of the attempt that counts."""

    request: Request
    """The caller's request; of an attempt, what the retrying client sent in."""

    attempt: int | None
    """The number of the attempt, from 1; None of a call."""

    timeout: float | None
    """The attempt timeout in seconds; None of a call."""

    cut: Cut
    """The timer that cancels a function at its deadline, while it runs."""


class Call(RareCallFacts, Record, Context):
    """The state of one call, from its beginning to the end of its body.

    It is the record of the call too, and of its one request where nothing retries.

    Args:
        request: The request of the caller.
        loop: The event loop.
        timeout: Seconds that it may take; None for no limit.
        defaults: The settings of all calls of its session or function.
        session: The session; None of a function.
    """

    attempt: int | None = None
    number: int | None = None

    deadline: float | None
    """When the time of the call runs out, by the loop's clock."""

    defaults: CallDefaults
    """The settings of all calls of its session or function."""

    is_over: bool
    """Whether the caller has the response or the exception."""

    loop: asyncio.AbstractEventLoop

    machine_clock: float
    """The time of day at its start, by the clock of the machine."""

    resources: CallResources | None
    """What is closed at its end, or may be used once; None where nothing is."""

    retry_config: Any
    """The settings of the retrying client, once it has made an attempt of its own."""

    sent: list[Exchange] | tuple[()]
    """The requests of the call, in order; none where nothing retries."""

    session: aiohttp.ClientSession | None
    """The session, as long as the call lasts."""

    def __init__(
        self,
        request: Request,
        loop: asyncio.AbstractEventLoop,
        timeout: float | None,
        defaults: CallDefaults,
        session: aiohttp.ClientSession | None = None,
    ) -> None:
        self.request = request
        self.loop = loop
        self.started: float = loop.time()
        self.deadline = None if timeout is None else self.started + timeout
        self.machine_clock = time.time()
        self.defaults = defaults
        self.session = session
        self.outcome: Outcome = PENDING
        self.is_over = self.is_settled = self.was_refused = self.was_sent = False
        self.resources = self.retry_config = None
        self.sent = ()

    @property
    def call(self) -> Self:
        """The call itself."""
        return self

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
    def record(self) -> Self:
        """The call itself, where nothing makes attempts."""
        return self

    @property
    def key(self) -> IdempotencyKey | None:
        """The key by which a server recognises its request; None if nobody made one."""
        return None if self.resources is None else self.resources.key

    @property
    def first(self) -> Record:
        """The first request; the call where there is none."""
        return self.sent[0] if self.sent else self

    @property
    def attempts_made(self) -> int:
        """How many attempts there were: requests, without those sent again."""
        return len(self.sent) + self.dropped.count - self.resends

    def sent_after(self, number: int | None) -> list[Exchange]:
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

    def time_of(self, record: Record) -> float:
        """Return the seconds left for a request: ``inf`` for no limit, 0.0 after it."""
        deadline = self.deadline_of(record)
        if deadline is None:
            return math.inf
        left = deadline - self.loop.time()
        return max(0.0, left)

    def move_deadline(self, deadline: float | None) -> None:
        """Set the deadline of the call, not beyond the attempt that it is made in."""
        self.aiohttp_keeps_time = False
        limits = (limit for limit in (deadline, self.cap) if limit is not None)
        self.deadline = min(limits, default=None)
        for cut in (self.deadline_cuts or {}).values():
            cut.follow()

    def begin_request(self, request: Request, timeout: float | None = None) -> Exchange:
        """Begin another request, without a body here, with a time limit of its own."""
        started, sent = self.loop.time(), self.sent
        deadline = None if timeout is None else started + timeout
        # Some before it may not be kept.
        number = sent[-1].number + 1 if sent else 1
        record = Exchange(request, started, deadline, number)
        if self.outcome is not PENDING and not self.is_settled:
            # A decorator outside may begin anew after what looked like the end.
            self.outcome = PENDING
        if not sent:
            self.sent = [record]
            return record
        sent.append(record)
        if len(sent) > MOST_KEPT:
            dropped = self.dropped.with_one_of(sent, self.outcome)
            self.dropped: DroppedRequests = dropped
        return record

    def surround(self, record: Record, inside: Call) -> None:
        """Register a nested call, made inside an attempt of this call.

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

    def own_resources(self) -> CallResources:
        """Return the resources of the call, made where it had none."""
        if self.resources is None:
            self.resources = CallResources()
        return self.resources

    def wait_with(self, waiter: Callable[[], object]) -> None:
        """Call a function, once, when something of the call has ended."""
        self.waiters = (*self.waiters, waiter)

    def wake(self) -> None:
        """Call the waiters, because something has ended."""
        waiters = self.waiters
        self.waiters: Sequence[Callable[[], object]] = ()
        for waiter in waiters:
            waiter()


class Exchange(Record):
    """One request of a call: sent, about to be sent, or refused before that."""

    delay: float | None
    delay_source: DelaySource | None
    number: int

    def __init__(
        self, request: Request, started: float, deadline: float | None, number: int
    ) -> None:
        self.request = request
        self.started = started
        self.deadline = deadline
        self.number = number
        self.outcome = PENDING
        self.is_settled = self.was_refused = self.was_sent = False

    @property
    def shown_request(self) -> Request:
        """The request as it was sent, but for its body."""
        return self.sent_request or self.begun_request
