"""Limit retries by a quota of tokens, and requests by a rate that throttling sets."""

from __future__ import annotations

import asyncio
import math
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, fields, replace
from typing import ClassVar

from .. import _checks as check
from .._clock import loop_time
from .._errors import bad_argument, is_finite
from .._failures.hints import RetryInfo
from .._values import Shared, extensible
from .interfaces import RetryError

_SECONDS = "backoff_scale_value", "throttling_backoff_scale_value", "max_backoff"
_COUNTS = "retry_cost", "timeout_cost", "throttling_cost", "no_retry_increment"


@extensible
@dataclass(frozen=True, slots=True, kw_only=True)
class RetryProfile:
    """The constants of the standard and the adaptive mode.

    ==================================  ==========  ==========  ============  =========
    constant                            ``V2_1``    ``V2_0``    ``DYNAMODB``  ``GUIDE``
    ==================================  ==========  ==========  ============  =========
    ``max_attempts``                    3           3           4             5
    ``retry_cost``                      14          5           14            5
    ``timeout_cost``                    14          10          14            10
    ``throttling_cost``                 5           5           5             5
    ``no_retry_increment``              1           1           1             1
    ``success_refund``                  None        None        None          1
    ``backoff_scale_value``             0.05 s      1 s         0.025 s       1 s
    ``throttling_backoff_scale_value``  1 s         1 s         1 s           1 s
    ``max_backoff``                     20 s        20 s        20 s          20 s
    ``max_added_delay``                 5 s         None        5 s           inf
    ==================================  ==========  ==========  ============  =========

    Make one of your own with :func:`dataclasses.replace`. Costs of 0 make a quota that
    never refuses.

    Args:
        max_attempts: Attempts of one call, the first one included, >= 1.
        retry_cost: What a retry takes from the quota, an int >= 0.
        timeout_cost: The same after a timeout.
        throttling_cost: The same after the server has complained of too many requests.
        no_retry_increment: What a call that needed no retry adds to the quota, an int
            >= 0.
        success_refund: What a call that succeeded by a retry adds to the quota, an int
            >= 0. None: what its last retry has cost.
        backoff_scale_value: Longest delay before the first retry in seconds, >= 0.
        throttling_backoff_scale_value: The same where the server throttles.
        max_backoff: Limit of the delays in seconds, >= 0.
        max_added_delay: Seconds by which the server can make a delay longer, >= 0.
            ``math.inf``: as many as it asks for. None: up to a delay of *max_backoff*.

    Raises:
        ValueError: An argument is not as described.

    Source: the AWS SDKs; ``GUIDE`` is the example strategy of Smithy's guide.

    >>> from dataclasses import replace
    >>> replace(RetryProfile.V2_1, retry_cost=10)
    RetryProfile(retry_cost=10)
    """

    V2_1: ClassVar[RetryProfile]
    """The defaults of the SDKs since November 2026."""

    V2_0: ClassVar[RetryProfile]
    """The defaults of the SDKs before that."""

    DYNAMODB: ClassVar[RetryProfile]
    """``V2_1`` for DynamoDB, which answers faster than most services."""

    GUIDE: ClassVar[RetryProfile]
    """The numbers of the example strategy in Smithy's guide.

    A success refunds 1, whatever its retries have cost, and a server may ask for any
    delay. The guide's sample code counts retries against its maximum of attempts,
    and so makes six where it says five; this makes five.
    """

    max_attempts: int = 3
    retry_cost: int = 14
    timeout_cost: int = 14
    throttling_cost: int = 5
    no_retry_increment: int = 1
    success_refund: int | None = None
    backoff_scale_value: float = 0.05
    throttling_backoff_scale_value: float = 1.0
    max_backoff: float = 20.0
    max_added_delay: float | None = 5.0

    def __post_init__(self) -> None:
        check.integer("max_attempts", self.max_attempts, 1)
        for name in _COUNTS:
            check.integer(name, getattr(self, name), 0)
        check.integer("success_refund", self.success_refund, 0, or_none=True)
        for name in _SECONDS:
            check.not_negative(name, getattr(self, name))
        added = self.max_added_delay
        if added not in (None, math.inf) and not (is_finite(added) and added >= 0):
            expected = "finite and >= 0, math.inf, or None"
            raise bad_argument("max_added_delay", added, expected)

    def __repr__(self) -> str:
        for name in ("V2_1", "V2_0", "DYNAMODB", "GUIDE"):
            if self == getattr(RetryProfile, name):
                return f"RetryProfile.{name}"
        settings = (
            f"{field.name}={getattr(self, field.name)!r}"
            for field in fields(self)
            if getattr(self, field.name) != field.default
        )
        return f"RetryProfile({', '.join(settings)})"


RetryProfile.V2_1 = RetryProfile()
RetryProfile.V2_0 = RetryProfile(
    retry_cost=5, timeout_cost=10, backoff_scale_value=1.0, max_added_delay=None
)
RetryProfile.DYNAMODB = RetryProfile(max_attempts=4, backoff_scale_value=0.025)
RetryProfile.GUIDE = RetryProfile(
    max_attempts=5,
    retry_cost=5,
    timeout_cost=10,
    success_refund=1,
    backoff_scale_value=1.0,
    max_added_delay=math.inf,
)


class StandardRetryQuota(Shared):
    """A bucket of tokens that pays for retries.

    It is full at first. A retry takes out what it costs, a success puts something back,
    and a call that fails in the end puts back nothing. So retries stop while most
    calls fail, and begin again when the server has recovered.

    Calls, strategies, event loops and threads may share one. A copy of it is the quota
    itself.

    The constants are those of ``V2_1``. A subclass may have others, and a quota with a
    *profile* has that one's.

    Args:
        initial_capacity: Tokens at the beginning, and at most, an int >= 0.
        profile: The costs and refunds, for all strategies that have this quota,
            whatever their own profile says. None: the constants of the class.

    Raises:
        ValueError: An argument is not as described.

    Source: the AWS SDKs and smithy-python, whose class of this name it is.

    >>> quota = StandardRetryQuota(20)
    >>> cost = quota.acquire(error=ConnectionResetError())
    >>> quota.release(release_amount=cost)
    >>> cost, quota.available_capacity
    (14, 20)
    """

    INITIAL_RETRY_TOKENS: int = 500
    """The tokens of a quota that is made without *initial_capacity*."""

    RETRY_COST: int = RetryProfile.V2_1.retry_cost
    """Tokens that a retry takes out."""

    THROTTLING_RETRY_COST: int = RetryProfile.V2_1.throttling_cost
    """Tokens that a retry takes out after throttling."""

    NO_RETRY_INCREMENT: int = RetryProfile.V2_1.no_retry_increment
    """Tokens that a call without a retry puts in."""

    def __init__(
        self,
        initial_capacity: int = INITIAL_RETRY_TOKENS,
        *,
        profile: RetryProfile | None = None,
    ) -> None:
        check.integer("initial_capacity", initial_capacity, 0)
        if profile is None:
            profile = replace(
                RetryProfile.V2_1,
                retry_cost=self.RETRY_COST,
                timeout_cost=self.RETRY_COST,
                throttling_cost=self.THROTTLING_RETRY_COST,
                no_retry_increment=self.NO_RETRY_INCREMENT,
            )
        check.kind("profile", profile, RetryProfile)
        self.RETRY_COST = profile.retry_cost
        self.THROTTLING_RETRY_COST = profile.throttling_cost
        self.NO_RETRY_INCREMENT = profile.no_retry_increment
        self._max_capacity = initial_capacity
        self._available_capacity = initial_capacity
        self._profile = profile
        self._lock = threading.Lock()

    @property
    def available_capacity(self) -> int:
        """The tokens in the quota now."""
        with self._lock:
            return self._available_capacity

    def acquire(self, *, error: Exception) -> int:
        """Pay for a retry.

        Args:
            error: What the attempt before failed with. Its price is that of throttling,
                else that of a timeout, else that of any other retry.

        Returns:
            What was paid, to be given back by :meth:`release` if the retry succeeds.

        Raises:
            RetryError: There are too few tokens; none was taken.
        """
        cost = self._cost(RetryInfo.of(error))
        with self._lock:
            available = self._available_capacity
            if cost <= available:
                self._available_capacity = available - cost
                return cost
        raise RetryError(f"Retry quota exceeded: needs {cost} tokens, {available} left")

    def release(self, *, release_amount: int) -> None:
        """Put tokens back after a success; the bucket never holds more than at first.

        Args:
            release_amount: What the last retry of the call has paid, an int >= 0; the
                profile's ``success_refund`` is put back in its place where there is
                one. 0 for a call that needed none, which brings the profile's
                ``no_retry_increment``.

        Raises:
            ValueError: *release_amount* is not as described.
        """
        check.integer("release_amount", release_amount, 0)
        profile = self._profile
        if not release_amount:
            amount = profile.no_retry_increment
        elif profile.success_refund is None:
            amount = release_amount
        else:
            amount = profile.success_refund
        self._add(amount)

    def __repr__(self) -> str:
        settings = f"{self._max_capacity}, profile={self._profile!r}"
        return f"{type(self).__name__}({settings})"

    def _add(self, amount: int) -> None:
        with self._lock:
            self._available_capacity = min(
                self._available_capacity + amount, self._max_capacity
            )

    def _cost(self, info: RetryInfo) -> int:
        if info.is_throttling_error:
            return self._profile.throttling_cost
        if info.is_timeout_error:
            return self._profile.timeout_cost
        return self._profile.retry_cost


_MAX_GROWTH = 2.0

_LONGEST_SLEEP = 1.0
"""Seconds after which a waiter looks at the rate again, which may have risen."""

_LOOKS_PER_TURN = 4
"""The divisor of the remaining wait, for the length of one sleep."""

_LAG = 0.1
"""The largest lag between the event loops of two threads, in seconds."""

_NEGLIGIBLE = 1e-9
"""Seconds that are not worth a wait: mostly they are what rounding has left over."""

# The numbers of the CUBIC formula (RFC 9438) and of the buckets, as the AWS SDKs have
# them.
_BETA = 0.7
"""The part of the rate that is left after a throttling answer."""

_SCALE = 0.4
_SMOOTHING = 0.8
_BUCKETS_PER_SECOND = 2
_MIN_FILL_RATE = 0.5
_MIN_CAPACITY = 1.0


class ClientRateLimiter(Shared):
    """Keeps requests to the rate that the server lets through.

    It does nothing until the server has throttled once. From then on each attempt needs
    a token. Tokens come at the *fill rate*, which falls to 0.7 of the present rate with
    each throttling answer and rises with each other one, failures included, after the
    CUBIC formula: quickly up to the rate that was too much, slowly around it, and ever
    more quickly beyond. It is never more than twice the rate at which answers come, and
    never less than one attempt in two seconds.

    Calls, event loops and threads may share one; a copy is the rate limiter itself.
    Waiting calls are served roughly in the order in which they came. But a call that
    asks when there is a token gets it, even while another call waits for several.

    Args:
        clock: Seconds, as a finite number; by default the running event loop's time,
            without one :func:`time.monotonic`. It is first read when the rate limiter
            is first used. Where it goes back, as when a new event loop begins at 0, the
            rate is measured anew from there; tokens and rates stay as they are.

    Raises:
        ValueError: *clock* is not as described.

    Source: the ``adaptive`` mode of the AWS SDKs.

    >>> limiter = ClientRateLimiter(clock=lambda: 0.0)
    >>> limiter.try_acquire()
    0.0
    >>> limiter.update(throttled=True)
    >>> limiter.fill_rate, limiter.try_acquire()
    (0.5, 2.0)
    """

    def __init__(self, *, clock: Callable[[], float] | None = None) -> None:
        if clock is not None and not callable(clock):
            raise bad_argument("clock", clock, "a callable that returns seconds")
        self._clock = loop_time if clock is None else clock
        self._lock = threading.Lock()
        self._enabled = False
        self._bucket = TokenBucket()
        self._line: deque[float] = deque()
        self._queued = 0.0
        self._meter = RateMeter(0.0)
        self._seen = math.inf
        self._max_rate = 0.0
        self._throttled_at = 0.0

    @property
    def enabled(self) -> bool:
        """Whether the server has ever throttled."""
        return self._enabled

    @property
    def fill_rate(self) -> float:
        """The granted rate in attempts per second, once the limiter is enabled."""
        return self._bucket.fill_rate

    @property
    def measured_rate(self) -> float:
        """Answers per second, as of the last half second that is over."""
        return self._meter.rate

    @property
    def capacity(self) -> float:
        """The current number of tokens."""
        with self._lock:
            return self._bucket.level(self._clock())

    async def acquire(self, amount: float = 1.0) -> None:
        """Wait until there are tokens to send an attempt, and take them.

        A waiter that is cancelled takes none.

        Args:
            amount: Tokens to take, > 0. The limiter keeps the tokens of one second, at
                least 1. It saves up more only while no outcome is reported and no token
                is taken. So a large amount may wait for ever where small ones are taken
                all the time.

        Raises:
            ValueError: *amount* is not as described.
        """
        await self._acquire(amount)

    async def _acquire(
        self,
        amount: float = 1.0,
        remaining: Callable[[], float] = lambda: math.inf,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> bool:
        """Do :meth:`acquire`; say whether the tokens came within *remaining*.

        If not, nothing was taken, and it was given up as soon as *remaining* had too
        few seconds for the wait until it may be granted, or until the next look.
        """
        if not (wait := self.try_acquire(amount)):
            return True
        place = self._join_line(amount)
        try:
            while wait:
                # Sooner than its turn would come at this rate, which may rise, and
                # waiters ahead may leave.
                turn = (place - self._line[0]) / self.fill_rate / _LOOKS_PER_TURN
                pause = min(_LONGEST_SLEEP, wait + turn)
                if max(wait, pause) >= remaining():
                    return False
                await sleep(pause)
                wait = self.try_acquire(amount)
        finally:
            # Without the lock: a wait that is thrown away with its event loop ends
            # wherever the garbage is collected, maybe where the lock is held.
            self._line.remove(place)
        return True

    def _join_line(self, amount: float) -> float:
        """Queue for tokens; return how many were queued for before."""
        with self._lock:
            if not self._line:
                self._queued = 0.0
            place = self._queued
            self._queued += amount
            self._line.append(place)
        return place

    def try_acquire(self, amount: float = 1.0) -> float:
        """Take tokens to send an attempt if there are enough, without waiting.

        Args:
            amount: As for :meth:`acquire`.

        Returns:
            0.0 if the tokens were taken. Otherwise none was taken, and these are the
            seconds until there may be enough.

        Raises:
            ValueError: *amount* is not as described.
        """
        check.positive("amount", amount)
        with self._lock:
            now = self._now()
            return self._bucket.try_take(amount, now) if self._enabled else 0.0

    def expected_wait(self, *, after: float = 0.0) -> float:
        """Return the expected wait of a single attempt, in seconds.

        Args:
            after: Seconds from now until the attempt asks, finite and >= 0.

        Raises:
            ValueError: *after* is not as described.

        >>> limiter = ClientRateLimiter(clock=lambda: 0.0)
        >>> limiter.update(throttled=True)
        >>> limiter.expected_wait(), limiter.expected_wait(after=0.5)
        (2.0, 1.5)
        """
        check.not_negative("after", after)
        with self._lock:
            if not self._enabled:
                return 0.0
            missing = 1.0 - self._bucket.level(self._clock() + after, 1.0)
            return max(0.0, missing) / self._bucket.fill_rate

    def update(self, *, throttled: bool) -> None:
        """Learn from the outcome of an attempt; call it once for each.

        Args:
            throttled: Whether the server complained of too many requests. Any other
                outcome, also a failure, is a sign that it did not.
        """
        with self._lock:
            now = self._now()
            self._meter.record(now)
            measured = self._meter.rate
            if throttled:
                sent = min(measured, self.fill_rate) if self._enabled else measured
                self._enabled, self._max_rate, self._throttled_at = True, sent, now
                rate = rate_after_throttling(sent)
            else:
                rate = rate_after_success(now - self._throttled_at, self._max_rate)
            self._bucket.change_rate(min(rate, _MAX_GROWTH * measured), now)

    def __repr__(self) -> str:
        state = f"fill_rate={self.fill_rate:.3g}" if self._enabled else "not enabled"
        return f"<{type(self).__name__}: {state}>"

    def _now(self) -> float:
        """Read the clock; begin to measure at first, and anew where it goes back."""
        now = self._clock()
        if not is_finite(now):
            raise bad_argument("clock", now, "returns a finite number")
        if self._seen - _LAG <= now < self._seen:
            return self._seen
        if now < self._seen:
            self._meter.begin(now)
            self._throttled_at = now
        self._seen = now
        return now


class RateMeter:
    """Measures how many requests there are per second.

    Requests are counted in half seconds of the clock. Each time one is over, the count
    goes into the rate: ``0.8 * count / seconds + 0.2 * rate``.
    """

    rate: float
    """Requests per second, as of the last half second that is over."""

    def __init__(self, now: float) -> None:
        self.rate = 0.0
        self.begin(now)

    def begin(self, now: float) -> None:
        """Count from *now* on; the rate stays until there is a new one."""
        self._count = 0
        self._since = float(math.floor(now))

    def record(self, now: float) -> None:
        """Count a request that was answered *now*."""
        self._count += 1
        bucket = math.floor(now * _BUCKETS_PER_SECOND) / _BUCKETS_PER_SECOND
        if bucket > self._since:
            newest = self._count / (bucket - self._since)
            self.rate = _SMOOTHING * newest + (1 - _SMOOTHING) * self.rate
            self._count = 0
            self._since = bucket


def zero_point(max_rate: float) -> float:
    """Return the seconds from a throttling answer to the rate at which it came.

    ``K = cbrt(max_rate * (1 - 0.7) / 0.4)``

    >>> round(zero_point(10.0), 6)
    1.957434
    """
    return math.cbrt(max_rate * (1 - _BETA) / _SCALE)


def rate_after_throttling(rate: float) -> float:
    """Return the rate to go on with where *rate* was too much: ``0.7 * rate``.

    >>> rate_after_throttling(10.0)
    7.0
    """
    return rate * _BETA


def rate_after_success(elapsed: float, max_rate: float) -> float:
    """Return the rate that may be tried so many seconds after a throttling answer.

    ``0.4 * (elapsed - K) ** 3 + max_rate``: it rises quickly at first, slowly around
    the rate that was too much, and ever more quickly beyond it.

    >>> round(rate_after_success(0.0, 10.0), 6), round(rate_after_success(4.0, 10.0), 6)
    (7.0, 13.408697)
    """
    return _SCALE * (elapsed - zero_point(max_rate)) ** 3 + max_rate


class TokenBucket:
    """Holds the tokens that requests need, and fills as time goes by.

    It is empty at first, and begins to fill when it is first used.
    """

    fill_rate: float
    """Tokens per second."""

    def __init__(self) -> None:
        self.fill_rate = _MIN_FILL_RATE
        self._max_level = _MIN_CAPACITY
        self._level = 0.0
        self._filled_at: float | None = None

    def level(self, now: float, amount: float = 0.0) -> float:
        """Return the tokens there are *now* for a call that wants *amount*."""
        if self._filled_at is None:
            return 0.0
        income = (now - self._filled_at) * self.fill_rate
        most = max(self._max_level, amount)
        # Nothing is taken away by a clock that goes back, nor by a call that wants
        # less than another one has saved up for.
        return max(self._level, min(most, self._level + income))

    def try_take(self, amount: float, now: float) -> float:
        """Take *amount*, or nothing; return the seconds until there is enough."""
        self._fill(now, amount)
        wait = (amount - self._level) / self.fill_rate
        # A wait that does not even move the clock would be waited for again and again.
        if wait >= _NEGLIGIBLE and now + wait > now:
            return wait
        self._level = max(0.0, self._level - amount)
        return 0.0

    def change_rate(self, rate: float, now: float) -> None:
        """Fill at *rate* from *now* on, and hold as many tokens as come in a second."""
        self._fill(now)
        self.fill_rate = max(rate, _MIN_FILL_RATE)
        self._max_level = max(rate, _MIN_CAPACITY)
        self._level = min(self._level, self._max_level)

    def _fill(self, now: float, amount: float = 0.0) -> None:
        self._level = self.level(now, amount)
        self._filled_at = now
