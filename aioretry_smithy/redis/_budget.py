"""Let the processes of a service share a retry budget."""

from __future__ import annotations

import asyncio
import math
from contextvars import Context
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from .._clock import loop_time
from .._errors import checked_name, is_plain_function
from .._limits.storage import RedisClient, StorageProbe, check_client, no_client
from .._retry.budget import RetryBudget, RetryBudgetListener, count_failure, prices_of
from .._retry.limiter import RetryLimiter
from .._text.printable import encodable
from .._values import Shared

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .._context.context import ClientRequestContext


_REPORT_AFTER = 1.0
"""Seconds after which outcomes are reported, unless a retry reports them before."""

_FORGOTTEN_AFTER = 3600
"""Seconds without an outcome after which the tokens are as at first."""

_SCRIPT = f"""
local state = redis.call('HMGET', KEYS[1], 'tokens', 'failures')
local capacity, brake_after = tonumber(ARGV[1]), tonumber(ARGV[2])
local tokens = tonumber(state[1]) or capacity
local failures = tonumber(state[2]) or 0
if ARGV[4] == '1' then failures = 0 end
failures = failures + tonumber(ARGV[5])
tokens = math.max(0, math.min(tokens + tonumber(ARGV[3]), capacity))
local is_braked = brake_after > 0 and failures >= brake_after - 1e-9
local price, is_paid = tonumber(ARGV[6]), 0
if price and not is_braked and tokens >= price - 1e-9 then
    tokens = math.max(tokens - price, 0)
    is_paid = 1
end
local shown, counted = string.format('%.17g', tokens), string.format('%.17g', failures)
redis.call('HSET', KEYS[1], 'tokens', shown, 'failures', counted)
redis.call('EXPIRE', KEYS[1], {_FORGOTTEN_AFTER})
return {{is_paid, shown, counted}}
"""


@dataclass(slots=True)
class Outcomes:
    """The outcomes of attempts since the last report to Redis."""

    tokens: float = 0.0
    """Tokens that came, less the cost of retries while Redis was away."""

    has_success: bool = False

    failures: float = 0.0
    """Failures in a row, by weight, since the last success if there was one."""

    def add(self, later: Outcomes) -> None:
        """Add later outcomes."""
        self.tokens += later.tokens
        self.failures = later.failures_after(self.failures)
        self.has_success |= later.has_success

    def failures_after(self, failures: float) -> float:
        """Return the failures in a row, given the number before."""
        return self.failures + (0 if self.has_success else failures)


class SharedRetryBudget(Shared, RetryLimiter):
    """A :class:`~aioretry_smithy.RetryBudget` that processes share through Redis.

    The successes of all processes pay for the retries of each of them, and the failures
    in a row are those of all of them together. Processes with the same Redis and name
    share a budget; give them the same settings.

    A retry runs one script in Redis, which is atomic. Successes and failures are
    reported together, with the next retry, or in a task after a second. After an hour
    without either the budget is full again.

    A Redis that does not answer within a second is away, even if the calls that asked
    have given up before. No call waits for it then: the budget decides by the outcomes
    of this process, looks once a second whether Redis is back and logs a warning once a
    minute.

    The budget may serve many clients and tasks of one event loop, but not threads.
    Copying it gives the same one.

    Args:
        redis: A ``redis.asyncio.Redis``, or a client that is like it.
        name: The name of the budget, the same in all processes; a string that is not
            empty.
        deposit: As for :class:`~aioretry_smithy.RetryBudget`.
        capacity: As for :class:`~aioretry_smithy.RetryBudget`, of all processes
            together.
        brake_after: As for :class:`~aioretry_smithy.RetryBudget`.
        unserved_cost: As for :class:`~aioretry_smithy.RetryBudget`.
        listeners: Called for each change that this process learns of, with a budget of
            the same name.

    Raises:
        ValueError: An argument is not as described.

    >>> from aioretry_smithy.redis import SharedRetryBudget
    >>> def chain(redis):
    ...     budget = SharedRetryBudget(redis, "orders", capacity=20)
    ...     return RetryingClient.new_decorator(
    ...         RetryStrategy.failsafe(), limiter=budget
    ...     )
    """

    def __init__(
        self,
        redis: RedisClient,
        name: str,
        *,
        deposit: float = 0.1,
        capacity: float = 10.0,
        brake_after: int | None = 3,
        unserved_cost: float = 1.0,
        listeners: Iterable[RetryBudgetListener] = (),
    ) -> None:
        checked_name(name)
        self._deposit = deposit
        self._local = RetryBudget(
            name,
            deposit=deposit,
            capacity=capacity,
            brake_after=brake_after,
            unserved_cost=unserved_cost,
            listeners=listeners,
        )
        check_client(redis, "register_script")
        self._run = redis.register_script(_SCRIPT)
        if is_plain_function(self._run):
            raise no_client(redis)
        self._key = encodable(f"aioretry_smithy:retry-budget:{name}")
        self._settings = repr(float(capacity)), brake_after or 0
        # What Redis does not know yet.
        self._unreported = Outcomes()
        self._storage = StorageProbe(
            repr(self), "each process decides about retries alone"
        )
        # When the next outcomes are reported; long ago where there are none.
        self._report_at = -math.inf

    @property
    def name(self) -> str:
        """The name of the budget in logs, to listeners and in Redis."""
        return self._local.name

    @property
    def tokens(self) -> float:
        """The current tokens, by the knowledge of the process."""
        return self._local.tokens

    @property
    def failures_in_a_row(self) -> float:
        """The failures since the last success, by the knowledge of the process.

        By weight, as those of a :class:`~aioretry_smithy.RetryBudget`.
        """
        return self._local.failures_in_a_row

    async def acquire(self, ctx: ClientRequestContext, cause: Exception | None) -> bool:
        """Pay for a retry in Redis; while that is away, from what this process has."""
        if self._storage.is_down:
            self._storage.probe(self._report)
            return self._acquire_alone(ctx, cause)
        deadline = loop_time() + ctx.root.remaining()
        prices = prices_of(self._local)
        price = prices.of(ctx, cause)
        asked = self._storage.ask(partial(self._report, price))
        is_paid = None
        try:
            is_paid = await self._storage.answer(asked, deadline)
        finally:
            if is_paid is None:
                asked.add_done_callback(partial(self._put_back, price))
        if is_paid is None:
            return self._acquire_alone(ctx, cause)
        if is_paid:
            prices.note(ctx, price)
        else:
            self._local._refuse(ctx)
        return is_paid

    def release(self, ctx: ClientRequestContext) -> None:
        """Take back what a retry has cost that does not take place."""
        self._local.release(ctx)
        self._unreported.tokens += prices_of(self._local).paid_for(ctx)
        self._report_later(loop_time())

    def on_success(self, ctx: ClientRequestContext) -> None:
        """Count a success: it brings the deposit and lets the brake go."""
        self._local.on_success(ctx)
        self._unreported.tokens += self._deposit
        self._unreported.has_success, self._unreported.failures = True, 0.0
        self._report_later(loop_time())

    def on_failure(self, ctx: ClientRequestContext, cause: Exception | None) -> None:
        """Count a failure, unless throttled, or one of many on a broken connection."""
        weight = count_failure(self._local, ctx, cause)
        if weight:
            self._unreported.failures += weight
            self._report_later(loop_time())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._local.name!r}, {self._local._settings})"

    def _refusal(self, ctx: ClientRequestContext, cause: Exception | None) -> str:
        return self._local._refusal(ctx, cause)

    def _acquire_alone(
        self, ctx: ClientRequestContext, cause: Exception | None
    ) -> bool:
        is_paid = self._local.acquire(ctx, cause)
        if is_paid:
            self._unreported.tokens -= prices_of(self._local).paid_for(ctx)
            self._report_later(loop_time())
        return is_paid

    def _report_later(self, now: float) -> None:
        # Also where a loop has ended before it was time.
        if now > self._report_at:
            self._report_at = now + _REPORT_AFTER
            loop = asyncio.get_running_loop()
            # Not that of the call, which it would keep alive.
            loop.call_at(self._report_at, self._report_now, context=Context())

    def _report_now(self) -> None:
        self._report_at = -math.inf
        self._storage.send(self._report)

    def _put_back(self, price: float, asked: asyncio.Task[bool | None]) -> None:
        """Put back the price of a retry that did not wait for Redis."""
        if not asked.cancelled() and asked.result():
            self._unreported.tokens += price
            self._report_later(loop_time())

    async def _report(self, price: float | None = None) -> bool:
        """Report all outcomes, and pay a price, if any; say whether that is paid.

        Learn what tokens are left, and of the failures in a row.
        """
        reported, self._unreported = self._unreported, Outcomes()
        tokens, failures = repr(reported.tokens), repr(reported.failures)
        outcomes = tokens, int(reported.has_success), failures
        paying = "" if price is None else repr(float(price))
        try:
            is_paid, tokens, failures = await self._run(
                keys=[self._key], args=[*self._settings, *outcomes, paying]
            )
        except BaseException:
            reported.add(self._unreported)
            self._unreported = reported
            raise
        unreported = self._unreported
        left = float(tokens) + unreported.tokens
        self._local._become(left, unreported.failures_after(float(failures)))
        return bool(is_paid)
