"""Hold the state of a call: the facts shared by all requests, and the end."""

from __future__ import annotations

import math
import os
import time
import weakref
from base64 import b32encode
from functools import lru_cache
from itertools import count
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, Self, TypeAlias

from .._clock import wall_clock_at
from .._failures.kept_cause import CallBound, KeptCause
from .._text.mask import DEFAULT_MASK, Mask
from .outcome import NOTHING, PENDING, Outcome, connection_of
from .record import MOST_KEPT, NONE_DROPPED, CallsInside, Record

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import aiohttp
    from yarl import URL

    from .._request.endpoint import Endpoint, Service
    from .._request.keys import OwnHosts
    from .._request.request import HttpRequest
    from .deadline_cut import DeadlineCut
    from .outcome import Attributes, Cut, Holdings, Request, Result, RetryStopReason
    from .record import DelaySource, DroppedRequests, SerializedJson

    OnBody: TypeAlias = Callable[["Call", Result, bytes | None], None]
    """A callback with the call, the examined answer, and the body if read."""


class CallDefaults:
    """An immutable snapshot of the settings that calls share.

    Args:
        mask: What their views hide.
        headers: A copy of the session's headers; None of a function.
        no_retries: Whether each makes one attempt, whatever its settings say.
    """

    __slots__ = ("headers", "mask", "no_retries", "version")

    base_url: URL | Service | None = None
    """What relative URLs are joined to; None of a function."""

    mask: Mask
    """What the views of a call hide."""

    headers: Mapping[str, str] | None
    """A copy of the session's headers; None of a function."""

    no_retries: bool
    """Whether retries are switched off, whatever the settings."""

    version: object
    """The version of the session's headers; -1 if unknown."""

    def __init__(
        self,
        mask: Mask = DEFAULT_MASK,
        headers: Mapping[str, str] | None = None,
        *,
        no_retries: bool = False,
    ) -> None:
        self.mask = mask
        self.headers = headers
        self.no_retries = no_retries
        self.version = -1


class Context(CallBound):
    """The state that a call and an attempt of it have in common."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def call(self) -> Call:
            """The call of the context; a call returns itself."""

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
    """The timer that cancels a running function at the deadline."""


class Call(Record, Context):
    """The state of a call, from the beginning to the end of the body.

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

    deadline_cuts: dict[Any, DeadlineCut] | None
    """The timers that cut users' code at the deadline, by the task that runs it."""

    is_over: bool
    """Whether the caller has the response or the exception."""

    loop: asyncio.AbstractEventLoop

    machine_clock: float
    """The time of day at its start, by the clock of the machine."""

    resources: CallResources | None
    """Resources that are closed at the end of the call; None without any."""

    retry_config: Any
    """The settings of the retrying client, once it has made an attempt of its own."""

    sent: list[Exchange] | tuple[()]
    """The requests of the call, in order; none where nothing retries."""

    session: aiohttp.ClientSession | None
    """The session, until the end of the call."""

    # What few calls have: the class has the default, an instance a value.

    aiohttp_keeps_time: bool = True
    """Whether the session's own timeout, which aiohttp keeps, is the deadline."""

    own_attributes: Attributes | None = None
    """Values of the decorators' own, once there are any."""

    awaiting_body: list[Callable[..., None]] | None = None
    """Callbacks for the body of an answer, while a retrying client may read it."""

    around: Callable[[], Any] | None = None
    """A weak reference to the call in whose attempt this call was made."""

    brings_response: bool = True
    """Whether the result is a response; False of the call of a function."""

    cap: float | None = None
    """The deadline of the attempt around this call."""

    cut: Cut = None
    """The timer that cancels a running function at the deadline."""

    timeout: float | None = None
    """The attempt timeout in seconds; None of a call."""

    dropped: DroppedRequests = NONE_DROPPED
    """The requests in the middle, of which nothing is kept but counts."""

    gave_up_inside: bool = False
    """Whether it failed with the error of a nested call that has made its retries."""

    has_begun_to_send: bool = False
    """Whether a request got as far as the transport, if the caller may change that."""

    has_queued: bool = False
    """Whether a request has waited in the queue of a limit."""

    holdings: Holdings = None
    """The limits and trials that the call holds outside of its attempts."""

    options: Any = None
    """The options of the blocks of code around the call."""

    outer_epoch: tuple[float, float] | None = None
    """The epoch of the outermost enclosing call."""

    refused_hedges: int = 0
    """How many hedges a limiter has refused."""

    assigned_id: str | None = None
    """The ID of the call, made on first use."""

    limiter: str | None = None
    """The name of the limiter that refused a retry last, and its level."""

    own_headers: Mapping[str, str] | None = None
    """The session's headers, where they changed before the first request."""

    own_mask: Mask | None = None
    """The mask of this call, where calls around or inside hide more."""

    reads_whole_bodies: bool = False
    """Whether each body is read whole within its attempt, as the settings say."""

    resends: int = 0
    """How many requests were sent again because a connection of the pool was broken."""

    retry_error: BaseException | KeptCause | None = None
    """The error with which a Smithy strategy refused an attempt."""

    switches: int = 0
    """How often the call went to the next endpoint without a wait."""

    stays_at: Endpoint | None = None
    """The endpoint of the last part of a download, which is asked first."""

    stop_reason: RetryStopReason | None = None
    """Why there was no further attempt; None after a success."""

    tries_before: int = 0
    """The number of the last request of the part before."""

    waiters: Sequence[Callable[[], object]] = ()
    """Functions to call, once, when something of the call has ended."""

    waits_at_circuits: Any = None
    """The seconds that the call has waited at open circuits, if any."""

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
        self.is_over = self.is_final = self.was_refused = self.was_sent = False
        self.resources = self.retry_config = self.deadline_cuts = None
        self.sent = ()

    @property
    def call(self) -> Self:
        """The call; attempts have the attribute too."""
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
        """The time of day at the start of the call, which a virtual clock moves."""
        return wall_clock_at(self.loop, self.started, self.machine_clock)

    @property
    def epoch(self) -> tuple[float, float]:
        """When the outermost call around began: by the wall clock, and the loop's.

        All of them count from there, though the machine's clock may be set meanwhile.
        """
        return self.outer_epoch or (self.wall_clock, self.started)

    @property
    def record(self) -> Self:
        """The call itself: without attempts, the call is its own record."""
        return self

    @property
    def attributes(self) -> Attributes:
        """Values of the decorators' own, shared by a call and all its attempts."""
        if self.own_attributes is None:
            self.own_attributes = {}
        return self.own_attributes

    @property
    def key(self) -> IdempotencyKey | None:
        """The idempotency key of the request; None without a key."""
        return None if self.resources is None else self.resources.key

    @property
    def first(self) -> Record:
        """The first request, or the call itself if none was made."""
        return self.sent[0] if self.sent else self

    @property
    def attempts_made(self) -> int:
        """How many attempts there were: requests, without those sent again."""
        return len(self.sent) + self.dropped.count - self.resends

    def sent_after(self, number: int | None) -> list[Exchange]:
        """Return the requests of the call after that *number*; all of them for None."""
        return [each for each in self.sent if each.number > (number or 0)]

    @property
    def was_sent_at_all(self) -> bool:
        """Whether a server may have seen any request of the call."""
        was_sent = self.was_sent or self.dropped.were_sent
        return was_sent or any(each.was_sent for each in self.sent)

    def deadline_of(self, record: Record) -> float | None:
        """Return when the time of a request runs out, never later than the call's."""
        outer, own = self.deadline, record.deadline
        if outer is None or (own is not None and own < outer):
            return own
        return outer

    def time_of(self, record: Record) -> float:
        """Return the seconds left for a request: ``inf`` without a deadline, or 0.0."""
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
        """Begin a further request, without a body, with a separate time limit."""
        started, sent = self.loop.time(), self.sent
        deadline = None if timeout is None else started + timeout
        if self.outcome is not PENDING and not self.is_final:
            # A decorator outside may begin anew after what looked like the end.
            self.outcome = PENDING
        if not sent:
            record = Exchange(request, started, deadline, 1)
            self.sent = [record]
            return record
        # Some before it may not be kept.
        record = Exchange(request, started, deadline, sent[-1].number + 1)
        sent.append(record)
        if len(sent) > MOST_KEPT:
            dropped = self.dropped.with_one_of(sent, self.outcome)
            self.dropped: DroppedRequests = dropped
        return record

    def add_nested_call(self, record: Record, inside: Call) -> None:
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
        self.is_final = self.was_refused = self.was_sent = False

    @property
    def shown_request(self) -> Request:
        """The sent request, without its body."""
        return self.sent_request or self.begun_request


def will_read(call: Call) -> None:
    """Note that the body of the next answer may be read before the attempt is over."""
    call.awaiting_body = []


def await_body(call: Call, on_body: OnBody) -> bool:
    """Register a callback for the body; return False if the body will not be read."""
    if call.awaiting_body is None:
        return False
    call.awaiting_body.append(on_body)
    return True


def tell_of_body(call: Call, result: Result, body: bytes | None = None) -> None:
    """Call the callbacks for a body once, after the answer was examined."""
    waiting, call.awaiting_body = call.awaiting_body or (), None
    for on_body in waiting if result is not NOTHING else ():
        on_body(call, result, body)


def forget_body(call: Call) -> None:
    """Drop the callbacks for a body, because there is no answer."""
    if call.awaiting_body is not None:
        call.awaiting_body = None


def id_of(call: Call) -> str:
    """Return the id of a call, which it gets when it is first asked for."""
    own = call.assigned_id
    if own is None:
        process, numbers = _ids_of(os.getpid())
        # It has one, though two threads ask at once.
        own = vars(call).setdefault("assigned_id", f"{process}-{next(numbers)}")
    return own


@lru_cache(maxsize=1)
def _ids_of(process: int) -> tuple[str, Iterator[int]]:
    """Return what the ids in a process are made of: 40 random bits, and a counter."""
    return b32encode(os.urandom(5)).decode().lower(), count(1)


class IdempotencyKey(NamedTuple):
    """An idempotency key, by which a server recognises repeated requests."""

    header: str
    """The name of the header that carries the key."""

    value: str | None
    """The generated key; None if the caller's key is used."""

    request: HttpRequest
    """The request of the caller that the key was made for."""

    def is_for(self, request: HttpRequest) -> bool:
        """Say whether the key was made for *request*, apart from headers."""
        own, others = self.request.arguments, request.arguments
        return (
            self.request.method == request.method
            and own.get("data") is others.get("data")
            and own.get("json") is others.get("json")
            and self.request.full_url() == request.full_url()
        )

    def was_made_for(self, request: HttpRequest) -> bool:
        """Say whether a request carries the key that was made."""
        return self.value is not None and self.value == request.headers.get(self.header)


class BoundHeader(NamedTuple):
    """A header that goes neither to other servers nor along with a redirect to one."""

    name: str
    hosts: OwnHosts


NONE_BOUND: Final[Mapping[str, BoundHeader]] = MappingProxyType({})


class ReplayableBody(Protocol):
    """A body that several attempts of a call can send, or the tracker of a body."""

    source: object
    """The caller's own object."""

    async def end(self) -> None:
        """Close the body if aiohttp wanted to close it; end its tracker."""
        ...


class CallResources:
    """Bodies and responses closed at the end of a call, and single-use objects.

    Made only for calls that have one of these; see :meth:`.Call.own_resources`.
    """

    bodies: Sequence[ReplayableBody] = ()
    """The wrapped bodies of the call, and what tracks their uploads."""

    json: list[SerializedJson]
    """The values of ``json=``, each with the text that its first body had."""

    bound_headers: Mapping[str, BoundHeader] = NONE_BOUND
    """The headers that go to certain servers alone, by their names in lower case."""

    key: IdempotencyKey | None = None
    """The key by which a server recognises the request of the call."""

    key_stayed: bool = False
    """Whether a redirect led the last request to a server that did not get the key."""

    _responses: Sequence[tuple[aiohttp.ClientResponse, object]] = ()
    _used: Sequence[object] = ()

    def __init__(self) -> None:
        self.json = []

    async def close_bodies(self) -> None:
        """Close the bodies that aiohttp wanted to close, and end their trackers."""
        bodies, self.bodies = self.bodies, ()
        for body in bodies:
            await body.end()

    def track(self, response: aiohttp.ClientResponse, owner: object = None) -> None:
        """Remember a response whose connection is in use, in case the call fails.

        It may have an *owner*, which is sent for, and be closed with that one alone.
        """
        open_ones = [each for each in self._responses if connection_of(each[0])]
        self._responses = [*open_ones, (response, owner)]

    def close_responses(self, owner: object = None) -> None:
        """Close responses that a decorator may have left open when the call failed.

        Or, when what an *owner* was sent for is given up, only those that it has.
        """
        for response, its_owner in self._responses:
            if owner is None or owner is its_owner:
                response.close()

    def bind(self, header: BoundHeader) -> None:
        """Let a header go to certain servers alone from now on."""
        self.bound_headers = {**self.bound_headers, header.name.lower(): header}

    def use_once(self, used: object) -> bool:
        """Mark an object as used; return False if it was used in this call before."""
        if any(earlier is used for earlier in self._used):
            return False
        self._used = (*self._used, used)
        return True
