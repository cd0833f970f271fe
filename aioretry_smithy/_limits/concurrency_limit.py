"""Limit how many requests are in flight at once, by a number or as a server bears."""

from __future__ import annotations

import logging
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from .. import _checks as check
from .._clock import NEAR, loop_time
from .._errors import bad_argument, checked_name, is_finite, is_plain_function
from .._policies.listeners import Listeners
from .._policies.queues import WaitQueue
from .._values import Shared

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterable

    from .._context.context import ClientRequestContext


_logger = logging.getLogger("aioretry_smithy")


class Places:
    """The places of a limit in one event loop: who is in flight, and who waits.

    Args:
        loop: The event loop; None before the first request.
    """

    __slots__ = ("in_flight", "loop", "queue")

    in_flight: int
    """How many requests are in flight."""

    queue: WaitQueue[Permit]
    """The requests that wait for a place."""

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self.loop = loop
        self.in_flight = 0
        self.queue = WaitQueue()

    @property
    def are_over(self) -> bool:
        """Whether the event loop is closed, without requests in flight or waiting."""
        return self.loop is not None and self.loop.is_closed()

    def in_loop(self, loop: asyncio.AbstractEventLoop) -> Places:
        """Return the places for an event loop: new ones where the last is closed."""
        if self.are_over:
            return Places(loop)
        if self.loop is None:
            self.loop = loop
        return self


class Permit:
    """The permit of a request in flight.

    Args:
        limit: Gave it.
        begun: The time of the event loop.
    """

    __slots__ = ("_places", "begun", "in_flight", "limit")

    limit: ConcurrencyLimit | None
    """The limit that gave the permit; None once the permit is released."""

    begun: float
    """The time when the permit was given."""

    in_flight: int
    """Requests in flight at the time, including the new request."""

    def __init__(self, limit: ConcurrencyLimit, begun: float) -> None:
        self.limit = limit
        self.begun = begun
        self._places = places = limit._places
        self.in_flight = places.in_flight

    def learn(self, *, dropped: bool) -> None:
        """Report to the limit how the request was answered, before it is released."""
        limit = self.limit
        if limit is not None and limit._learns:
            limit._sample(loop_time(), self, dropped)

    def release(self) -> None:
        """Release the permit to the next waiting request; further calls do nothing."""
        limit, places = self.limit, self._places
        if limit is None:
            return
        self.limit = None
        places.in_flight -= 1
        # Those of an event loop that was closed are nobody's any more.
        if places is not limit._places:
            return
        if not (places.queue.waiting or limit._changes_alone):
            return
        try:
            limit._look()
        except Exception:
            _logger.warning("%r raised, which is ignored", limit, exc_info=True)


_WARM_UP = 10
"""The number of samples up to which the average is a plain mean."""

_STALE = 2.0
"""An average that exceeds the last sample so many times is from a past overload."""

_FADE = 0.95
_STEEPEST = 0.5


@dataclass(slots=True, repr=False, eq=False)
class _Adaptive:
    """A limit that adapts within bounds.

    Raises:
        ValueError: *minimum* is not an int >= 1, or the others are not above it.
    """

    initial: float
    minimum: int
    maximum: float

    limit: float = field(init=False)
    """The limit with its fraction."""

    decreased_at: float = field(init=False, default=-math.inf)

    def __post_init__(self) -> None:
        minimum, maximum = self.minimum, self.maximum
        check.integer("minimum", minimum, 1)
        if not is_finite(maximum) or maximum < minimum:
            raise bad_argument("maximum", maximum, f"finite and >= minimum, {minimum}")
        if not is_finite(self.initial) or not minimum <= self.initial <= maximum:
            expected = f"from minimum, {minimum}, to maximum, {maximum}"
            raise bad_argument("initial", self.initial, expected)
        self.limit = float(self.initial)

    def change(self, limit: float) -> None:
        """Set the limit to what is nearest to *limit* within the bounds."""
        self.limit = min(max(limit, float(self.minimum)), float(self.maximum))

    def described(self, kind: str, settings: str) -> str:
        """Return how such a limit is made."""
        low, high = self.minimum, self.maximum
        bounds = f"initial={self.initial!r}, minimum={low!r}, maximum={high!r}"
        return f"{kind}({bounds}, {settings})"

    def may_decrease(self, now: float, round_trip: float) -> bool:
        """Note a drop; return whether the limit is to be decreased for it.

        That is once a round trip, however many calls are dropped: a call that began
        before the last decrease says nothing of the limit after it.
        """
        if now - round_trip <= self.decreased_at + NEAR:
            return False
        self.decreased_at = now
        return True


@dataclass(slots=True, repr=False, eq=False)
class Aimd(_Adaptive):
    """Additive increase, multiplicative decrease: the rule of TCP's window.

    Raises:
        ValueError: An argument is not as described.
    """

    backoff_ratio: float
    """What is left of the limit after a drop, > 0 and < 1."""

    slow_after: float | None
    """Seconds after which an answer counts as a drop; None for never."""

    def __post_init__(self) -> None:
        _Adaptive.__post_init__(self)
        ratio, slow_after = self.backoff_ratio, self.slow_after
        if not is_finite(ratio) or not 0 < ratio < 1:
            raise bad_argument("backoff_ratio", ratio, "> 0 and < 1")
        check.positive("slow_after", slow_after, or_none=True)

    def add(
        self, now: float, round_trip: float, in_flight: int, *, dropped: bool
    ) -> None:
        """Learn from a call that ends *now*."""
        limit, slow_after = self.limit, self.slow_after
        if dropped or (slow_after is not None and round_trip > slow_after):
            if self.may_decrease(now, round_trip):
                self.change(limit * self.backoff_ratio)
        elif in_flight * 2 >= limit:
            self.change(limit + 1 / limit)

    def __repr__(self) -> str:
        ratio, slow_after = self.backoff_ratio, self.slow_after
        own = f"backoff_ratio={ratio!r}, slow_after={slow_after!r}"
        return self.described("aimd", own)


@dataclass(slots=True, repr=False, eq=False)
class Gradient(_Adaptive):
    """Netflix's Gradient2: compare each round trip with the average of the last ones.

    A drop has no round trip to compare. It counts as the steepest gradient, once a
    round trip, and is not in the average.

    Raises:
        ValueError: An argument is not as described.

    Source: ``Gradient2Limit`` of Netflix's ``concurrency-limits``.
    """

    tolerance: float
    """How many times the average a round trip may take, finite and >= 1."""

    smoothing: float
    """The share of a sample in the new limit, > 0 and <= 1."""

    queue: float
    """What is added to the limit each time, finite and >= 0."""

    window: int
    """The samples that the average is taken of, an int >= 1."""

    average: float = field(init=False, default=0.0)
    count: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        _Adaptive.__post_init__(self)
        if not is_finite(self.tolerance) or self.tolerance < 1:
            raise bad_argument("tolerance", self.tolerance, "finite and >= 1")
        if not is_finite(self.smoothing) or not 0 < self.smoothing <= 1:
            raise bad_argument("smoothing", self.smoothing, "> 0 and <= 1")
        check.not_negative("queue", self.queue)
        check.integer("window", self.window, 1)

    def add(
        self, now: float, round_trip: float, in_flight: int, *, dropped: bool
    ) -> None:
        """Learn from a call that ends *now*."""
        if dropped:
            gradient, counts = _STEEPEST, self.may_decrease(now, round_trip)
        else:
            gradient, counts = self._compare(round_trip), in_flight >= self.limit / 2
        if not counts:
            return
        aim = self.limit * gradient + self.queue
        self.change(self.limit + (aim - self.limit) * self.smoothing)

    def _compare(self, round_trip: float) -> float:
        """Add a round trip to the average, and return the gradient."""
        self.count += 1
        is_warm = self.count > min(_WARM_UP, self.window)
        share = 2 / (self.window + 1) if is_warm else 1 / self.count
        self.average += (round_trip - self.average) * share
        average = self.average
        if average > _STALE * round_trip:
            self.average *= _FADE
        if round_trip <= 0:
            return 1.0
        return max(_STEEPEST, min(1.0, self.tolerance * average / round_trip))

    def __repr__(self) -> str:
        own = f"tolerance={self.tolerance!r}, smoothing={self.smoothing!r}"
        more = f"queue={self.queue!r}, window={self.window!r}"
        return self.described("gradient", f"{own}, {more}")


class ConcurrencyLimitListener:
    """Receives the events of a concurrency limit; override the methods you need.

    The methods are plain, and called one event after the other, when the limit has
    already changed, so they may look at it. What they raise is logged.

    >>> class Gauge(ConcurrencyLimitListener):
    ...     def on_limit_changed(self, limit):
    ...         print(limit.name, "is", limit.limit)
    """

    def on_limit_changed(self, limit: ConcurrencyLimit) -> None:
        """Called when another number of requests may be in flight.

        First when the first request comes, and then whenever that changes.
        """

    def on_refused(self, limit: ConcurrencyLimit, ctx: ClientRequestContext) -> None:
        """Called when a request got no place in time, or none in the queue."""


class ConcurrencyLimit(Shared, ABC):
    """Limits and counts the requests in flight.

    :meth:`fixed` makes one that stays; :meth:`aimd` and :meth:`gradient` make limits
    that adapt to the server. For a rule of your own derive from this class: return the
    limit, and learn from the samples that :meth:`on_sample` gets. One limit may serve
    many clients, tasks and sessions of one event loop, but not threads. In a new loop
    it knows what it has learnt; places and waiters of one that was closed are
    forgotten. A copy is the same object.

    Args:
        name: For listeners and logs; ``concurrency-limit-0``, ``-1``, ... by default.
        listeners: Called for each change, in this order.

    Raises:
        ValueError: An argument is not as described.

    >>> class Halved(ConcurrencyLimit):
    ...     limit = 16
    ...     def on_sample(self, round_trip, in_flight, dropped):
    ...         if dropped:
    ...             self.limit = max(1, self.limit // 2)
    """

    _name: str
    _listeners: Listeners[ConcurrencyLimitListener]
    _places: Places

    _seen: int | None
    """The limit that was found last."""

    _learns: bool
    """Whether the limit adapts by samples."""

    _changes_alone: bool
    """Whether the limit may change without a sample."""

    def __new__(cls, *args: object, **kwargs: object) -> Self:
        """Make the state hidden from subclasses, for example the name."""
        self = super().__new__(cls)
        self._learns = cls.on_sample is not ConcurrencyLimit.on_sample
        self._changes_alone = True
        self._places, self._seen = Places(), None
        self._name_and_listeners(None, ())
        return self

    def __init__(
        self,
        *,
        name: str | None = None,
        listeners: Iterable[ConcurrencyLimitListener] = (),
    ) -> None:
        self._name_and_listeners(name, listeners)

    @staticmethod
    def fixed(
        limit: int | Callable[[], int],
        *,
        name: str | None = None,
        listeners: Iterable[ConcurrencyLimitListener] = (),
    ) -> ConcurrencyLimit:
        """Return a limit that is a number, or that a function returns.

        Args:
            limit: An int >= 1, or a function that returns one; it is asked whenever a
                request comes or ends.
            name: As for :class:`ConcurrencyLimit`.
            listeners: As for :class:`ConcurrencyLimit`.

        Raises:
            ValueError: An argument is not as described.

        >>> ConcurrencyLimit.fixed(10, name="orders")
        ConcurrencyLimit.fixed(10, name='orders')
        """
        return _FixedLimit(limit, name, listeners)

    @staticmethod
    def aimd(
        *,
        initial: float = 20,
        minimum: int = 1,
        maximum: float = 200,
        backoff_ratio: float = 0.9,
        slow_after: float | None = None,
        name: str | None = None,
        listeners: Iterable[ConcurrencyLimitListener] = (),
    ) -> ConcurrencyLimit:
        """Return a limit with additive increase and multiplicative decrease (AIMD).

        Each success adds ``1 / limit`` if at least half of the places were in use when
        its call began. A timeout, a status of 429 or 503, a connection that is refused,
        cut or reset, and an answer slower than *slow_after* multiply the limit by
        *backoff_ratio*, once a round trip: calls that began before the last cut change
        nothing. Other answers and failures change nothing either.

        Args:
            initial: The first limit, from *minimum* to *maximum*.
            minimum: The lowest, an int >= 1.
            maximum: The highest, finite and >= *minimum*.
            backoff_ratio: > 0 and < 1.
            slow_after: Seconds to the headers, finite and > 0; None: slow answers are
                as good as others.
            name: As for :class:`ConcurrencyLimit`.
            listeners: As for :class:`ConcurrencyLimit`.

        Raises:
            ValueError: An argument is not as described.

        >>> ConcurrencyLimit.aimd(initial=4).limit
        4
        """
        rule = Aimd(initial, minimum, maximum, backoff_ratio, slow_after)
        return _Learning(rule, name, listeners)

    @staticmethod
    def gradient(
        *,
        initial: float = 20,
        minimum: int = 1,
        maximum: float = 200,
        tolerance: float = 1.5,
        smoothing: float = 0.2,
        queue: float = 4,
        window: int = 600,
        name: str | None = None,
        listeners: Iterable[ConcurrencyLimitListener] = (),
    ) -> ConcurrencyLimit:
        """Return a limit that falls while round trips take longer than they used to.

        With each success the limit is multiplied by ``tolerance * average /
        round_trip``, which is taken as 0.5 where it is less and as 1 where it is more,
        and *queue* is added. A drop, as in :meth:`on_sample`, counts as 0.5. While less
        than half of the places are in use, only drops change the limit.

        Args:
            initial: As for :meth:`aimd`.
            minimum: As for :meth:`aimd`.
            maximum: As for :meth:`aimd`.
            tolerance: How many times the average a round trip may take, finite, >= 1.
            smoothing: The share of each new value in the limit, > 0 and <= 1.
            queue: Requests that may wait in the server, finite and >= 0.
            window: Successes that the average is taken of, an int >= 1.
            name: As for :class:`ConcurrencyLimit`.
            listeners: As for :class:`ConcurrencyLimit`.

        Raises:
            ValueError: An argument is not as described.

        Source: Gradient2 of Netflix's ``concurrency-limits``.

        >>> ConcurrencyLimit.gradient(tolerance=2.0).limit
        20
        """
        bounds = initial, minimum, maximum
        rule = Gradient(*bounds, tolerance, smoothing, queue, window)
        return _Learning(rule, name, listeners)

    @property
    @abstractmethod
    def limit(self) -> int:
        """How many requests may be in flight at once."""

    @property
    def name(self) -> str:
        """The name of the limit in logs and to listeners."""
        return self._name

    @property
    def in_flight(self) -> int:
        """How many requests are in flight."""
        places = self._places
        return 0 if places.are_over else places.in_flight

    @property
    def pending(self) -> int:
        """How many requests wait for a place."""
        places = self._places
        return 0 if places.are_over else len(places.queue)

    def on_sample(self, round_trip: float, in_flight: int, dropped: bool) -> None:
        """Learn from a request that was answered, or that the server has dropped.

        Cancelled requests, refused ones and failures that say nothing about the load
        of the server are not among them.

        Args:
            round_trip: Seconds from its place to the headers, or to the failure.
            in_flight: Requests in flight when it began, itself among them.
            dropped: Whether it was dropped: a timeout, a status of 429 or 503, a
                connection that was refused, cut or reset.
        """

    def _sample(self, now: float, permit: Permit, dropped: bool) -> None:
        """Learn from a request, and let others in if the limit has risen."""
        try:
            self.on_sample(now - permit.begun, permit.in_flight, dropped)
            self._look()
        except Exception:
            _logger.warning("%r raised, which is ignored", self, exc_info=True)

    def _try_enter_in(self, loop: asyncio.AbstractEventLoop) -> Permit | None:
        """Return a permit for a request of an event loop, if one is free."""
        if self._places.loop is not loop:
            self._places = self._places.in_loop(loop)
        return self._try_enter(loop.time())

    def _try_enter(self, now: float) -> Permit | None:
        """Return a permit, if one is free and no other request waits."""
        limit = self._seen
        if limit is None or self._changes_alone:
            limit = self._look()
        places = self._places
        if places.queue.waiting or places.in_flight >= limit:
            return None
        places.in_flight += 1
        return Permit(self, now)

    async def _wait(self, until: float) -> Permit | None:
        """Wait for a permit; None where there is none in time."""
        return await self._places.queue.wait(until, Permit.release)

    def _enter(self) -> Permit:
        self._places.in_flight += 1
        return Permit(self, loop_time())

    def _look(self) -> int:
        """Return the limit, and let waiting requests in while there is room."""
        limit = self.limit
        before, self._seen = self._seen, limit
        places = self._places
        if places.queue.waiting:
            while places.in_flight < limit and places.queue.serve(self._enter):
                pass
        if limit != before:
            self._listeners.notify(lambda each: each.on_limit_changed(self))
        return limit

    def _refuse(self, ctx: ClientRequestContext) -> None:
        self._listeners.notify(lambda listener: listener.on_refused(self, ctx))

    def _name_and_listeners(
        self, name: object, listeners: Iterable[ConcurrencyLimitListener]
    ) -> None:
        self._name = checked_name(name, "concurrency-limit")
        owner = f"concurrency limit {self._name!r}"
        self._listeners = Listeners(owner, listeners, ConcurrencyLimitListener)


class _FixedLimit(ConcurrencyLimit):
    def __init__(
        self,
        limit: int | Callable[[], int],
        name: str | None,
        listeners: Iterable[ConcurrencyLimitListener],
    ) -> None:
        super().__init__(name=name, listeners=listeners)
        if not is_plain_function(limit):
            _check("limit", limit, "an int >= 1, or a function")
            self._changes_alone = False
        self._given = limit

    @property
    def limit(self) -> int:
        given = self._given
        if callable(given):
            return _check("limit", given(), "a function that returns an int >= 1")
        return given

    def __repr__(self) -> str:
        return f"ConcurrencyLimit.fixed({self._given!r}, name={self.name!r})"


class _Learning(ConcurrencyLimit):
    def __init__(
        self,
        rule: Aimd | Gradient,
        name: str | None,
        listeners: Iterable[ConcurrencyLimitListener],
    ) -> None:
        super().__init__(name=name, listeners=listeners)
        self._rule = rule
        self._changes_alone = False

    @property
    def limit(self) -> int:
        return int(self._rule.limit)

    def on_sample(self, round_trip: float, in_flight: int, dropped: bool) -> None:
        self._rule.add(loop_time(), round_trip, in_flight, dropped=dropped)

    def _sample(self, now: float, permit: Permit, dropped: bool) -> None:
        rule = self._rule
        before = rule.limit
        rule.add(now, now - permit.begun, permit.in_flight, dropped=dropped)
        if rule.limit != before and int(rule.limit) != self._seen:
            self._look()

    def __repr__(self) -> str:
        return f"ConcurrencyLimit.{self._rule!r}"


def _check(name: str, limit: object, expected: str) -> int:
    if type(limit) is int and limit >= 1:
        return limit
    raise bad_argument(name, limit, expected)
