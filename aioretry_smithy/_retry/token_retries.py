"""Ask a strategy of Smithy's for the tokens of one call's attempts."""

from __future__ import annotations

import asyncio
import logging
import math
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from .._call.closing import pause, until_closed
from .._call.deadline_cut import CUT
from .._call.outcome import NOTHING, RetryStopReason
from .._errors import is_finite, raised_from
from .._failures.failure import failure_of
from .._failures.hints import RetryInfo, most_jitter
from ..smithy.interfaces import (
    BackoffExhaustedError,
    CallError,
    CapacityNotAvailableError,
    own_delay_of,
    refusals,
)
from .classify import Failure, classify, read_error_code
from .retries import Retries
from .smithy_strategies import delay_of, scope_of, tokens_of
from .wait import (
    AT_ONCE,
    NOT_WANTED,
    TOO_LATE,
    Decision,
    Stop,
    Wait,
    overrules,
    without_wait,
)

if TYPE_CHECKING:
    from ..smithy.limiters import ClientRateLimiter


logger = logging.getLogger("aioretry_smithy")


class TokenRetries(Retries):
    """Asks for a token before each attempt, and gives the last one back on success."""

    async def begin(self) -> Decision:
        """Acquire the initial token; without one, the call makes one attempt."""
        self._tokens = tokens_of(self.config.strategy, self.ctx)
        self._rate_limiter: ClientRateLimiter | None = None
        self._token: Any = None
        self._error: CallError | None = None
        self._has_new_token = self._overrules = False
        key, wait = self.adapter.key, AT_ONCE
        scope = scope_of(
            self.config.token_scope,
            self.ctx,
            self.request,
            key,
        )
        try:
            wait = await self._acquire(scope)
        except refusals() as refusal:
            self._note(refusal)
        except CapacityNotAvailableError as cause:
            self.cause = cause
            return Stop(RetryStopReason.LIMITER)
        is_late = wait is not AT_ONCE and wait.delay >= self.time_left()
        if is_late or self.ctx.remaining() <= 0:
            return self.time_out()
        return await self.wait(wait)

    async def _acquire(self, scope: str | None) -> Wait:
        tokens = self._tokens
        token = await tokens.acquire(scope)
        if token is CUT:
            return Wait(math.inf, "backoff")
        self._token = token
        delay = delay_of(token, "acquire_initial_retry_token")
        self._rate_limiter = limiter = tokens.rate_limiter(scope)
        is_held_up = False
        # After a delay, admit() asks again.
        if limiter is not None and not (delay and tokens.waits_for_rate):
            seconds = limiter.try_acquire()
            if seconds and not tokens.waits_for_rate:
                raise CapacityNotAvailableError(seconds)
            is_held_up = seconds > 0
        if delay:
            return Wait(delay, "backoff")
        return Wait(0.0, "rate_limit") if is_held_up else AT_ONCE

    async def admit(self) -> float | None:
        """Wait until the rate limiter grants an attempt, or until time runs out."""
        limiter = self._rate_limiter
        if limiter is None or not self._tokens.waits_for_rate:
            return 0.0
        if self.attempts_made and self.time_left() <= 0:
            # Listeners took all of it: no turn is to be spent on no attempt.
            return 0.0
        if not limiter.try_acquire():
            return 0.0
        clock = asyncio.get_running_loop().time
        started = clock()
        acquire = partial(limiter._acquire, 1.0, self.time_left)
        # Of a session that was closed meanwhile the next attempt is refused.
        if not await until_closed(self.call, acquire):
            return None
        return clock() - started

    async def ask(self) -> Stop | None:
        """Classify a failure, or report a success to the strategy."""
        if self.succeeded():
            await self._record_success()
            return NOT_WANTED
        code = await self._read_code()
        if self.was_cut():
            self._measure(throttled=False)
            return self.time_out()
        if failure_of(self.cause).kind.is_refusal:
            return NOT_WANTED
        failure = Failure(self.attempt, self.cause, code)
        self._error = error = classify(failure, self.config.classifiers)
        if error.retry_after is not None:
            error.retry_after = self._asked_of_call(error.retry_after)
        self._measure(throttled=error.is_throttling_error)
        if self._token is None:
            return await self._end_with(RetryStopReason.LIMITER)
        if RetryInfo.of(error).allows_retry:
            return None
        # The error forbids a retry, and not every strategy minds. One that the next
        # endpoint is asked in spite of is not asked: its token would be used up.
        if overrules(self.attempt, self.cause):
            self._overrules = False
        elif self.attempts_made < self.config.max_total_attempts:
            self._overrules = await self._refresh() is None
        return None if self._overrules else NOT_WANTED

    async def delay(self) -> Decision:
        """Exchange the token for that of the next attempt."""
        if not self._has_new_token:
            # A retry that would come too late is not to cost anything.
            if (decision := self.plan(Wait(0.0, "backoff"))).stops:
                return decision
            if (refused := await self._refresh()) is not None:
                return refused
        self._has_new_token = False
        delay = delay_of(self._token, "refresh_retry_token_for_retry")
        return Wait(delay, "backoff", self._jitter(delay))

    def _jitter(self, delay: float) -> float:
        """Return the most that is added to a hint: the backoff without the hint."""
        own = own_delay_of(self._token)
        if own is not None:
            return own
        # Only the strategy knows what of it is the backoff's.
        heard = self._error and self._error.retry_after
        return most_jitter(delay) if delay == heard else delay

    async def _refresh(self) -> Stop | None:
        """Ask for the token of the next attempt; return why there is none."""
        error = cast("CallError", self._error)
        try:
            token = await self._tokens.refresh(self._token, error)
        except refusals() as refusal:
            self._note(refusal)
            if self._tokens.long_polling:
                await self._wait_in_vain(RetryInfo.of(refusal).retry_after)
            reason = self._reason_of(refusal)
            await self._end_with(reason)
            return Stop(reason)
        if token is CUT:
            return TOO_LATE
        self._token = token
        self._has_new_token = True
        return None

    async def refund(self) -> None:
        """Refund the permit and the token of a retry that is not made."""
        self._tokens.release(self._token)
        await super().refund()

    def forget_earlier(self) -> None:
        """Drop earlier failures, and the error that stands for the last outcome."""
        self._error = None
        super().forget_earlier()

    def retry_after(self) -> float:
        """Return what the server, a classifier or an exception asks for, or 0."""
        own = self._error and self._error.retry_after
        return max(super().retry_after(), own or 0.0)

    def plan(self, wait: Wait) -> Decision:
        """Plan a wait that leaves time for the rate limiter too."""
        decision = super().plan(wait)
        limiter = self._rate_limiter
        if decision.stops or limiter is None:
            return decision
        if not self._tokens.waits_for_rate:
            return decision
        held_up = limiter.expected_wait(after=decision.delay)
        late = decision.delay + held_up >= self.time_left()
        return TOO_LATE if late else decision

    async def _read_code(self) -> str | None:
        if self.result is NOTHING:
            return None
        return await read_error_code(self.result, seconds=self.attempt.remaining())

    def _asked_of_call(self, asked: float) -> float | None:
        """Return the wait asked of the call; None if asked for one endpoint only."""
        if self.attempt.record.route is None:
            return asked
        _, asked_of_call = without_wait(self.attempt, self.cause, AT_ONCE, asked)
        return asked_of_call or None

    def _measure(self, *, throttled: bool) -> None:
        if self._rate_limiter is not None:
            self._rate_limiter.update(throttled=throttled)

    async def _record_success(self) -> None:
        if self._token is None:
            return
        try:
            await self._tokens.record_success(self._token)
        except Exception:
            logger.warning("a retry strategy failed to record a success", exc_info=True)

    async def _wait_in_vain(self, delay: float | None) -> None:
        """Slow down a caller who would ask again at once."""
        if delay is None or delay >= self.time_left():
            return
        record = self.attempt.record
        clock = asyncio.get_running_loop().time
        started = clock()
        try:
            await pause(self.call, delay)
        finally:
            record.delay, record.delay_source = clock() - started, "backoff"

    def _note(self, refusal: Exception) -> None:
        self.retry_error = refusal
        # An exception of the caller's own may refuse to be written on.
        with suppress(Exception):
            for link in (refusal, refusal.__context__):
                if isinstance(link, refusals()):
                    # A log may live for long, and frames hold bodies and responses.
                    link.__traceback__ = None

    async def _end_with(self, reason: RetryStopReason) -> Stop:
        """Stop with the last outcome, or with the refusal where that is wanted."""
        if not RetryInfo.of(self._error).allows_retry:
            return NOT_WANTED
        if self.config.raise_retry_error:
            refusal = cast("Exception", self.retry_error)
            with suppress(Exception):
                _chain(refusal, self._error)
            if self.result is not NOTHING:
                left = self.ctx.remaining()
                releasing = self.adapter.release(self.result, left, keep=False)
                if releasing is not None:
                    await releasing
            self.result, self.cause = NOTHING, refusal
        return Stop(reason)

    def _reason_of(self, refusal: Exception) -> RetryStopReason:
        if isinstance(refusal, BackoffExhaustedError):
            return RetryStopReason.BACKOFF_EXHAUSTED
        # A strategy that says when to come back has a token later.
        if RetryInfo.of(refusal).retry_after is not None:
            return RetryStopReason.LIMITER
        most = getattr(self.config.strategy, "max_attempts", None)
        if is_finite(most) and self.attempts_made >= most:
            return RetryStopReason.MAX_TOTAL_ATTEMPTS
        return RetryStopReason.NO_RETRY


def _chain(refusal: Exception, error: CallError | None) -> None:
    """Make a failure the cause of a refusal, where the strategy did not."""
    # One exception may be raised again and again; then it has that of another call.
    if not isinstance(refusal.__cause__, CallError | None):
        return
    if all(link is not refusal for link in raised_from(error)):
        refusal.__cause__ = error
