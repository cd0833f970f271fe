"""Make the attempts of one call: send, decide, wait, and again."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from .._call.origin import judge_attempt
from .._call.time_limits import time_left
from .._errors import ResponseTimeoutError, bad_argument, is_finite, raised_from
from .._failures.kept_cause import drop_frames
from .._failures.ran_out import ran_out
from .._failures.retry_info import RetryInfo
from .._failures.safety import peel, stands_for
from .._log.stop_reason import RetryStopReason
from .exchange import NOTHING
from .limiter_calls import acquired, notify, report
from .refusal import reason_after
from .wait import AT_ONCE, Wait, plan_wait

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from .._call.client import HttpClient
    from .._call.context import ClientRequestContext
    from .._request.request import HttpRequest
    from .config import RetryConfig
    from .exchange import Exchange
    from .limiter import RetryLimiter
    from .wait import Decision

_T = TypeVar("_T")


class RetriedCall(ABC):
    """One call on its way through a retrying client, from :meth:`run` to its outcome.

    The limits are the same for all calls. Two subclasses ask for another attempt: one a
    strategy and its backoff, one a strategy of Smithy's kind for a token.
    """

    __slots__ = (
        "_earlier_cause",
        "_owes_refund",
        "_permitted",
        "attempt",
        "attempts_made",
        "cause",
        "config",
        "ctx",
        "delegate",
        "exchange",
        "refusal",
        "request",
        "result",
    )

    attempt: ClientRequestContext
    """The attempt under way, or the last one; before the first, the call."""

    result: Any
    """The result of the last attempt; :data:`NOTHING` where it failed."""

    cause: Exception | None
    """The failure of the last attempt."""

    refusal: Exception | None
    """The error with which a Smithy strategy refused another attempt."""

    _earlier_cause: Exception | None

    def __init__(
        self,
        delegate: HttpClient,
        config: RetryConfig,
        ctx: ClientRequestContext,
        request: HttpRequest,
        exchange: Exchange,
    ) -> None:
        self.delegate = delegate
        self.config = config
        self.ctx = self.attempt = ctx
        self.request = request
        self.exchange = exchange
        self.attempts_made = 0
        # Whether a retry was paid for that has not begun yet.
        self._owes_refund = False
        # The attempt after which the limiter permitted a retry.
        self._permitted: ClientRequestContext | None = None
        self.result = NOTHING
        self.cause = self._earlier_cause = self.refusal = None
        (ctx.parent or ctx)._retry_config = config

    async def run(self) -> Any:
        """Make attempts until something says stop; return or raise the last outcome."""
        try:
            decision = await self.begin()
            while isinstance(decision, Wait):
                late = None if decision is AT_ONCE else await self._wait(decision)
                if late is None:
                    await self._send()
                decision = late or await self.next()
            if self._owes_refund:
                await self.refund()
        except BaseException as error:
            self._record_break(error)
            await (self.refund() if self._owes_refund else self._end_retry())
            raise
        return self._hand_over(decision)

    async def next(self) -> Decision:
        """Decide what follows an attempt, in the order of the limits."""
        limiter = self.config.limiter
        answer = await self.ask()
        if limiter is not None:
            await report(limiter, self.attempt, self.cause, wanted=answer is True)
            if self._permitted is not None:
                await self._end_retry()
        if answer is not True:
            return None if self.succeeded() else answer or RetryStopReason.NO_RETRY
        delay = self._limit() or await self.next_delay()
        if isinstance(delay, RetryStopReason):
            return delay
        if not (is_finite(delay) and delay >= 0):
            raise bad_argument("next_delay", delay, "seconds, finite and >= 0, or None")
        self._owes_refund = True
        decision = self.plan(delay)
        if limiter is None or isinstance(decision, RetryStopReason):
            return decision
        return await self._ask_limiter(limiter, delay, decision)

    async def begin(self) -> Decision:
        """Prepare the first attempt."""
        return AT_ONCE

    @abstractmethod
    async def ask(self) -> bool | RetryStopReason:
        """Ask, after an attempt, whether another is wanted, or why there is none."""

    @abstractmethod
    async def next_delay(self) -> float | RetryStopReason:
        """Find out how long to wait for the next attempt, or why there is none."""

    async def admit(self) -> float | RetryStopReason:
        """Wait on until an attempt may begin; return the seconds that took."""
        return 0.0

    async def refund(self) -> None:
        """Give back what a retry has cost, because it is not made after all."""
        self._owes_refund = False
        permitted, self._permitted, limiter = self._permitted, None, self.config.limiter
        if limiter is not None and permitted is not None:
            await notify(limiter, limiter.release, permitted)

    def plan(self, delay: float) -> Wait | RetryStopReason:
        """Plan a wait as long as the server asks, or stop if time is too short."""
        return plan_wait(delay, self.hint(), time_left(self.ctx), self.config)

    def hint(self) -> float:
        """Return the seconds that the server asks to be left alone, or 0."""
        if not self.config.use_retry_after:
            return 0.0
        if self.result is NOTHING:
            return RetryInfo.of(self.cause and peel(self.cause)).retry_after or 0.0
        return self.exchange.hint(self.result) or 0.0

    def succeeded(self) -> bool:
        """Say whether the last attempt brought a success."""
        return self.result is not NOTHING and self.exchange.is_success(self.result)

    def time_out(self) -> RetryStopReason:
        """Let the call end with a :class:`ResponseTimeoutError`."""
        message = f"the deadline passed, attempts: {self.attempts_made}"
        error = ResponseTimeoutError(message)
        error.__cause__ = self._earlier_cause or self.cause
        stands_for(error, self.cause)
        self.cause = error
        return RetryStopReason.DEADLINE

    def was_cut(self) -> bool:
        """Say whether the deadline of the call, and no other limit, cut the attempt."""
        return ran_out(self.cause) and time_left(self.ctx) <= 0

    async def read(self, look: Callable[[Any], Awaitable[_T]] | None = None) -> Any:
        """Read what is wanted of a body; where that fails, the attempt has failed."""
        if self.result is NOTHING:
            return None
        whole = self.config.buffer_response
        try:
            return await self.exchange.read(
                self.attempt, self.result, look, whole=whole
            )
        except Exception as cause:
            self.result, self.cause = NOTHING, cause
        return None

    def forget_outcomes(self) -> None:
        """Drop the outcomes: this object is in the frames of what is raised."""
        self.result = NOTHING
        self.cause = self._earlier_cause = self.refusal = None

    async def _send(self) -> None:
        """Make an attempt: its own context and log, timeout and retry count."""
        self.attempts_made += 1
        self._owes_refund = False
        request, config, ctx = self.request, self.config, self.ctx
        # Counted over the call: a decorator outside may send it through here twice.
        made_before = 0 if ctx.root._first_attempt else ctx.root.log._count_attempts()
        if made_before and config.retry_count_header is not None:
            name = config.retry_count_header
            request = self.exchange.with_count(request, name, made_before)
        self.attempt = attempt = ctx.derive(request, timeout=config.attempt_timeout)
        try:
            # Not in a variable, which would keep it alive through a wait.
            self.result = await self.delegate.execute(attempt, request)
        except Exception as cause:
            judge_attempt(attempt.log, cause)
            self.cause = cause
        attempt.log._is_settled = True

    async def _ask_limiter(
        self, limiter: RetryLimiter, delay: float, wait: Wait
    ) -> Wait | RetryStopReason:
        if not await acquired(limiter, self.attempt, self.cause):
            return RetryStopReason.LIMITER
        self._permitted = self.attempt
        # It may have taken its time.
        late = self.plan(delay)
        return late if isinstance(late, RetryStopReason) else wait

    def _limit(self) -> RetryStopReason | None:
        if self.attempts_made >= self.config.max_total_attempts:
            return RetryStopReason.MAX_TOTAL_ATTEMPTS
        if self.exchange.is_spent(self.ctx, self.request, self.cause):
            return RetryStopReason.BODY_NOT_REPLAYABLE
        return None

    async def _end_retry(self) -> None:
        """Tell the limiter that the retry that it permitted is over."""
        permitted, self._permitted, limiter = self._permitted, None, self.config.limiter
        if limiter is not None and permitted is not None:
            await notify(limiter, limiter.on_retry_end, permitted)

    async def _wait(self, wait: Wait) -> RetryStopReason | None:
        """Wait for the next attempt; return a reason where time ran out meanwhile."""
        log = self.attempt.log
        # Before its own first attempt a second pass waits after the last one's.
        log = log.children[-1] if log.children else log
        clock = asyncio.get_running_loop().time
        started = clock()
        log.delay, log.delay_source = wait
        try:
            delay = wait.delay
            if self.result is not NOTHING:
                await self.exchange.release(self.result, delay)
                delay -= clock() - started
            if self.cause is not None:
                drop_frames(self.cause)
                self._earlier_cause = self.cause
            self.result, self.cause = NOTHING, None
            await asyncio.sleep(delay)
            waited = await self.admit()
            if isinstance(waited, RetryStopReason):
                log.delay, log.delay_source = clock() - started, "rate_limit"
                return waited
            if waited:
                log.delay, log.delay_source = wait.delay + waited, "rate_limit"
        except BaseException:
            log.delay = clock() - started
            raise
        if self.attempts_made and time_left(self.ctx) <= 0:
            return self.time_out()
        return None

    def _hand_over(self, reason: RetryStopReason | None) -> Any:
        """Write the outcome into the log of the call, and return or raise it."""
        log = self.ctx.log.root
        # Unless a decorator has answered without waiting for this.
        if not log._is_settled:
            log.stop_reason = reason_after(self.attempt.log, reason)
            log._retry_error = self.refusal
            log._record_answer(self.attempt.log)
        if self.result is not NOTHING:
            return self.result
        cause: Any = self.cause
        self.forget_outcomes()
        log._record_failure(cause)
        try:
            raise cause
        finally:
            # It has this frame, which must not have it.
            del cause

    def _record_break(self, error: BaseException) -> None:
        """Leave nothing behind when *error* breaks into the call."""
        log, cause = self.attempt.log.root, self.cause
        # Otherwise another pass has answered meanwhile.
        is_open = not log._is_settled and (
            log.duration is None or self.attempt is self.ctx
        )
        if self.result is not NOTHING:
            self.exchange.close(self.result)
        raised = isinstance(error, Exception)
        if is_open:
            log._record_failure(error)
            log._retry_error = self.refusal
            log.stop_reason = (
                RetryStopReason.ERROR if raised else RetryStopReason.CANCELLED
            )
        if raised and all(link is not error for link in raised_from(cause)):
            # An exception of the caller's own may refuse to be written on.
            with suppress(Exception):
                error.__context__ = error.__context__ or cause
        self.forget_outcomes()
