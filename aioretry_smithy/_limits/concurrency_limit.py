"""Limit how many requests are in flight at once, by a number or as a server bears."""

from __future__ import annotations

import logging
import math
from abc import ABC, abstractmethod
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
    from .._context.holdings import Holdings


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


class Place:
    """The place of a request at a limit, released once.

    Args:
        limit: The limit.
    """

    __slots__ = ("_holdings", "limit")

    limit: ConcurrencyLimit | None
    """The limit of the place; None once the place is released."""

    def __init__(self, limit: ConcurrencyLimit) -> None:
        self.limit = limit
        self._holdings: Holdings | None = None

    def hold(self, holdings: Holdings) -> None:
        """Let an attempt hold the place, so that calls inside need none."""
        self._holdings = holdings
        holdings.add(self.limit)

    def learn(self, *, dropped: bool) -> None:
        """Report to the limit how the request was answered, before it is released."""

    def release(self) -> None:
        """Release the place to the next waiting request; further calls do nothing."""
        limit, self.limit = self.limit, None
        if limit is not None:
            if self._holdings is not None:
                self._holdings.remove(limit)
            self._free(limit)

    def _free(self, limit: ConcurrencyLimit) -> None:
        """Give the place back to its limit."""


class Permit(Place):
    """The place of a request in flight.

    Args:
        limit: The limit that gave the permit.
    """

    __slots__ = ("_places", "begun", "in_flight")

    begun: float
    """The time when the permit was given."""

    in_flight: int
    """Requests in flight at the time, including the new request."""

    def __init__(self, limit: ConcurrencyLimit) -> None:
        super().__init__(limit)
        self.begun = loop_time()
        self._places = places = limit._places
        self.in_flight = places.in_flight

    def learn(self, *, dropped: bool) -> None:
        if self.limit is not None:
            self.limit._sample(loop_time() - self.begun, self.in_flight, dropped)

    def _free(self, limit: ConcurrencyLimit) -> None:
        self._places.in_flight -= 1
        if self._places is not limit._places:
            # Those of an event loop that was closed are nobody's any more.
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

    _seen: float
    """The limit that was found last; NaN at first."""

    def __new__(cls, *args: object, **kwargs: object) -> Self:
        """Make the state hidden from subclasses, for example the name."""
        self = super().__new__(cls)
        self._places, self._seen = Places(), math.nan
        return self._named(None, ())

    def __init__(
        self,
        *,
        name: str | None = None,
        listeners: Iterable[ConcurrencyLimitListener] = (),
    ) -> None:
        self._named(name, listeners)

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
        return _FixedLimit(limit)._named(name, listeners)

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
        bounds = initial, minimum, maximum
        made = _Aimd(bounds, backoff_ratio, slow_after)
        return made._named(name, listeners)

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
        made = _Gradient(bounds, tolerance, smoothing, queue, window)
        return made._named(name, listeners)

    @property
    @abstractmethod
    def limit(self) -> int:
        """How many requests may be in flight at once; with 0 all of them wait."""

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

    def _sample(self, round_trip: float, in_flight: int, dropped: bool) -> None:
        """Learn from a request, and let others in if the limit has risen."""
        try:
            self.on_sample(round_trip, in_flight, dropped)
            self._look()
        except Exception:
            _logger.warning("%r raised, which is ignored", self, exc_info=True)

    def _try_enter(self, loop: asyncio.AbstractEventLoop) -> Permit | None:
        """Return a permit for a request of an event loop, if one is free."""
        self._places = places = self._places.in_loop(loop)
        limit = self._look()
        is_free = places.in_flight < limit and not places.queue.waiting
        return self._enter() if is_free else None

    async def _wait(self, until: float) -> Permit | None:
        """Wait for a permit; None where there is none in time."""
        return await self._places.queue.wait(until, Permit.release)

    def _enter(self) -> Permit:
        self._places.in_flight += 1
        return Permit(self)

    def _look(self) -> int:
        """Return the limit, and let waiting requests in while there is room."""
        limit, before = self.limit, self._seen
        if limit != before and not _is_limit(limit):
            raise bad_argument(f"{type(self).__name__}.limit", limit, "a number >= 0")
        self._seen = limit
        places = self._places
        if places.queue.waiting:
            while places.in_flight < limit and places.queue.serve(self._enter):
                pass
        if limit != before:
            self._listeners.notify(lambda each: each.on_limit_changed(self))
        return limit

    def _refuse(self, ctx: ClientRequestContext) -> None:
        self._listeners.notify(lambda listener: listener.on_refused(self, ctx))

    def _named(
        self, name: object, listeners: Iterable[ConcurrencyLimitListener]
    ) -> Self:
        self._name = checked_name(name, "concurrency-limit")
        owner = f"concurrency limit {self._name!r}"
        self._listeners = Listeners(owner, listeners, ConcurrencyLimitListener)
        return self


class _FixedLimit(ConcurrencyLimit):
    def __init__(self, limit: int | Callable[[], int]) -> None:
        if not is_plain_function(limit):
            _check(limit, "an int >= 1, or a function")
        self._given = limit

    @property
    def limit(self) -> int:
        given = self._given
        if callable(given):
            return _check(given(), "a function that returns an int >= 1")
        return given

    def _sample(self, round_trip: float, in_flight: int, dropped: bool) -> None:
        """Learn nothing: a function is asked when a request comes or ends."""

    def __repr__(self) -> str:
        return f"ConcurrencyLimit.fixed({self._given!r}, name={self.name!r})"


class _Adaptive(ConcurrencyLimit):
    """A limit that adapts within bounds.

    Raises:
        ValueError: *minimum* is not an int >= 1, or the others are not above it.
    """

    def __init__(self, initial: float, minimum: int, maximum: float) -> None:
        check.integer("minimum", minimum, 1)
        if not is_finite(maximum) or maximum < minimum:
            raise bad_argument("maximum", maximum, f"finite and >= minimum, {minimum}")
        if not is_finite(initial) or not minimum <= initial <= maximum:
            expected = f"from minimum, {minimum}, to maximum, {maximum}"
            raise bad_argument("initial", initial, expected)
        # With its fraction.
        self._exact = float(initial)
        self._lowest, self._highest = float(minimum), float(maximum)
        bounds = f"initial={initial!r}, minimum={minimum!r}, maximum={maximum!r}"
        self._bounds = bounds
        self._decreased_at = -math.inf

    @property
    def limit(self) -> int:
        return int(self._exact)

    def _change(self, limit: float) -> None:
        """Set the limit to what is nearest to *limit* within the bounds."""
        self._exact = min(max(limit, self._lowest), self._highest)

    def _may_decrease(self, round_trip: float) -> bool:
        """Note a drop; return whether the limit is to be decreased for it.

        That is once a round trip, however many calls are dropped: a call that began
        before the last decrease says nothing of the limit after it.
        """
        now = loop_time()
        if now - round_trip <= self._decreased_at + NEAR:
            return False
        self._decreased_at = now
        return True


class _Aimd(_Adaptive):
    """Additive increase, multiplicative decrease: the rule of TCP's window."""

    def __init__(
        self,
        bounds: tuple[float, int, float],
        backoff_ratio: float,
        slow_after: float | None,
    ) -> None:
        super().__init__(*bounds)
        if not is_finite(backoff_ratio) or not 0 < backoff_ratio < 1:
            raise bad_argument("backoff_ratio", backoff_ratio, "> 0 and < 1")
        check.positive("slow_after", slow_after, or_none=True)
        self._backoff_ratio, self._slow_after = backoff_ratio, slow_after

    def on_sample(self, round_trip: float, in_flight: int, dropped: bool) -> None:
        limit, slow_after = self._exact, self._slow_after
        if dropped or (slow_after is not None and round_trip > slow_after):
            if self._may_decrease(round_trip):
                self._change(limit * self._backoff_ratio)
        elif in_flight * 2 >= limit:
            self._change(limit + 1 / limit)

    def __repr__(self) -> str:
        ratio, slow_after = self._backoff_ratio, self._slow_after
        own = f"backoff_ratio={ratio!r}, slow_after={slow_after!r}"
        return f"ConcurrencyLimit.aimd({self._bounds}, {own})"


class _Gradient(_Adaptive):
    """Netflix's Gradient2: compare each round trip with the average of the last ones.

    A drop has no round trip to compare. It counts as the steepest gradient, once a
    round trip, and is not in the average.

    Source: ``Gradient2Limit`` of Netflix's ``concurrency-limits``.
    """

    def __init__(
        self,
        bounds: tuple[float, int, float],
        tolerance: float,
        smoothing: float,
        queue: float,
        window: int,
    ) -> None:
        super().__init__(*bounds)
        if not is_finite(tolerance) or tolerance < 1:
            raise bad_argument("tolerance", tolerance, "finite and >= 1")
        if not is_finite(smoothing) or not 0 < smoothing <= 1:
            raise bad_argument("smoothing", smoothing, "> 0 and <= 1")
        check.not_negative("queue", queue)
        check.integer("window", window, 1)
        self._tolerance, self._smoothing = tolerance, smoothing
        self._queue, self._window = queue, window
        self._average, self._count = 0.0, 0

    def on_sample(self, round_trip: float, in_flight: int, dropped: bool) -> None:
        limit = self._exact
        if dropped:
            gradient, counts = _STEEPEST, self._may_decrease(round_trip)
        else:
            gradient, counts = self._compare(round_trip), in_flight >= limit / 2
        if counts:
            aim = limit * gradient + self._queue
            self._change(limit + (aim - limit) * self._smoothing)

    def _compare(self, round_trip: float) -> float:
        """Add a round trip to the average, and return the gradient."""
        self._count += 1
        is_warm = self._count > min(_WARM_UP, self._window)
        share = 2 / (self._window + 1) if is_warm else 1 / self._count
        self._average += (round_trip - self._average) * share
        average = self._average
        if average > _STALE * round_trip:
            self._average *= _FADE
        if round_trip <= 0:
            return 1.0
        return max(_STEEPEST, min(1.0, self._tolerance * average / round_trip))

    def __repr__(self) -> str:
        own = f"tolerance={self._tolerance!r}, smoothing={self._smoothing!r}"
        more = f"queue={self._queue!r}, window={self._window!r}"
        return f"ConcurrencyLimit.gradient({self._bounds}, {own}, {more})"


def _is_limit(limit: int) -> bool:
    """Say whether what the class of a user has for a limit is a number >= 0."""
    try:
        # One of numpy has none of Python's classes.
        return bool(limit >= 0)
    except TypeError:
        return False


def _check(limit: object, expected: str) -> int:
    if type(limit) is int and limit >= 1:
        return limit
    raise bad_argument("limit", limit, expected)
