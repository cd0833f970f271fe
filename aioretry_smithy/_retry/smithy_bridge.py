"""One call whose retries a strategy of Smithy's kind decides about."""

from __future__ import annotations

import asyncio
import inspect
import logging
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from .._errors import FailFastError, bad_argument, is_finite, raised_from
from .._response import discard
from .._retry_info import RetryInfo
from .._time_limits import time_left
from ..smithy.adaptive_mode import AdaptiveMode
from ..smithy.classify import classify
from ..smithy.error_code import read_error_code
from ..smithy.errors import (
    BackoffExhaustedError,
    CallError,
    CapacityNotAvailableError,
    refusals,
)
from ..smithy.failure import Failure
from .own_strategy import own_strategy
from .session import RetrySession, Wait
from .stop_reason import RetryStopReason
from .token_scope import scope_of

if TYPE_CHECKING:
    from .._context import ClientRequestContext
    from .._request import HttpRequest
    from ..smithy.rate_limiter import ClientRateLimiter
    from .config import RetryConfig

logger = logging.getLogger("aioretry_smithy")


class TokenSession(RetrySession):
    """Asks for a token before each attempt, and gives the last one back on success.

    The strategies of this library are asked by way of what their methods are made of,
    which does not wait: here, waits are bounded by the deadline and seen in the log.
    """

    __slots__ = (
        "_error",
        "_has_new_token",
        "_limiter",
        "_our_strategy",
        "_overrules",
        "_strategy",
        "_token",
        "_waits_for_rate",
    )

    def __init__(
        self, config: RetryConfig, ctx: ClientRequestContext, request: HttpRequest
    ) -> None:
        super().__init__(config, ctx, request)
        strategy: Any = config.strategy
        self._strategy = strategy
        self._our_strategy = own_strategy(strategy)
        self._limiter: ClientRateLimiter | None = None
        self._waits_for_rate = False
        self._token: Any = None
        self._has_new_token = False
        self._error: CallError | None = None
        self._overrules = False

    async def open(self) -> Wait | None:
        """Acquire the initial token; without one, the call makes one attempt."""
        scope = scope_of(self._config.token_scope, self._ctx, self._request)
        wait = None
        try:
            wait = await self._acquire(scope)
        except refusals() as refusal:
            self._note(refusal)
        except CapacityNotAvailableError:
            self.stop_reason = RetryStopReason.LIMITER
            raise
        is_late = wait is not None and wait.delay >= time_left(self._ctx)
        if is_late or self._ctx.remaining() <= 0:
            self._time_out()
            return None
        return wait

    async def _acquire(self, scope: str | None) -> Wait | None:
        strategy = self._our_strategy
        if strategy is None:
            acquire = self._strategy.acquire_initial_retry_token
            token = await _settled(acquire(token_scope=scope))
            delay = _delay_of(token, "acquire_initial_retry_token")
        else:
            token = strategy._issue(scope)
            delay = token.retry_delay
        self._token = token
        held_up = False
        if isinstance(strategy, AdaptiveMode):
            self._limiter = strategy.limiter_for(scope)
            self._waits_for_rate = not strategy.fail_fast
            if strategy.fail_fast or not delay:
                held_up = self._is_held_up(self._limiter)
        if delay:
            return Wait(delay, "backoff")
        return Wait(0.0, "rate_limit") if held_up else None

    def _is_held_up(self, limiter: ClientRateLimiter) -> bool:
        """Ask the rate limiter for the first attempt."""
        wait = limiter.try_acquire()
        if wait and not self._waits_for_rate:
            raise CapacityNotAvailableError(wait)
        return wait > 0

    async def admit(self) -> float:
        """Wait until the rate limiter grants an attempt, or until time runs out."""
        limiter = self._limiter
        if limiter is None or not self._waits_for_rate or not limiter.try_acquire():
            return 0.0
        clock = asyncio.get_running_loop().time
        started = clock()
        if not await limiter._acquire(1.0, partial(time_left, self._ctx)):
            self._time_out()
        return clock() - started

    async def ask(self) -> bool:
        """Classify a failure, or tell the strategy of a success."""
        code = await self._read_code()
        if self._was_cut():
            self._measure(throttled=False)
            return False
        if self._succeeded():
            await self._record_success()
            return False
        if isinstance(self.cause, FailFastError):
            return False
        failure = Failure(self.attempt, self.cause, code)
        self._error = error = classify(failure, self._config.classifiers)
        self._measure(throttled=error.is_throttling_error)
        if self._token is None:
            await self._stop(RetryStopReason.LIMITER)
            return False
        if RetryInfo.of(error).allows_retry:
            return True
        return await self._is_overruled()

    async def _is_overruled(self) -> bool:
        """Ask about what nobody should retry: not everybody minds."""
        if self._made >= self._config.max_total_attempts:
            return self._overrules
        self._overrules = await self._renew()
        return self._overrules

    async def next_delay(self) -> float | None:
        """Exchange the token for that of the next attempt."""
        if not self._has_new_token:
            # What nobody could wait for costs nothing.
            if isinstance(reason := self._fit(0.0), RetryStopReason):
                self.stop_reason = reason
                return None
            if not await self._renew():
                return None
        self._has_new_token = False
        return _delay_of(self._token, "refresh_retry_token_for_retry")

    async def _renew(self) -> bool:
        error = cast("CallError", self._error)
        try:
            if self._our_strategy is not None:
                self._token = self._our_strategy._renew(self._token, error)
            else:
                refresh = self._strategy.refresh_retry_token_for_retry
                self._token = await _settled(
                    refresh(token_to_renew=self._token, error=error)
                )
        except refusals() as refusal:
            self._note(refusal)
            if self._our_strategy is not None and self._our_strategy.long_polling:
                await self._wait_in_vain(RetryInfo.of(refusal).retry_after)
            await self._stop(self._reason_of(refusal))
            return False
        self._has_new_token = True
        return True

    async def drop(self) -> None:
        """Pay back, too, what a retry that is not made has cost."""
        if self._our_strategy is not None:
            self._our_strategy._take_back(self._token)
        await super().drop()

    def end(self) -> None:
        """Part with the error that stands for the last outcome, too."""
        self._error = None
        super().end()

    def _hint(self) -> float:
        hint = super()._hint()
        if self._error is None or not self._config.use_retry_after:
            return hint
        # A classifier, or an exception, may know of one that no header has.
        return max(hint, self._error.retry_after or 0.0)

    def _fit(self, delay: float) -> Wait | RetryStopReason:
        decision = super()._fit(delay)
        if isinstance(decision, RetryStopReason) or not self._waits_for_rate:
            return decision
        limiter = cast("ClientRateLimiter", self._limiter)
        held_up = limiter.expected_wait(after=decision.delay)
        late = decision.delay + held_up >= time_left(self._ctx)
        return RetryStopReason.DEADLINE if late else decision

    async def _read_code(self) -> str | None:
        response = self.response
        if self._config.buffer_response:
            seconds = self.attempt.remaining()
            return await self._read(partial(read_error_code, seconds=seconds))
        if response is None or response.status < 400:
            return None
        return await read_error_code(response, seconds=self.attempt.remaining())

    def _measure(self, *, throttled: bool) -> None:
        if self._limiter is not None:
            self._limiter.update(throttled=throttled)

    async def _record_success(self) -> None:
        if self._token is None:
            return
        try:
            await _settled(self._strategy.record_success(token=self._token))
        except Exception:
            logger.warning("a retry strategy failed to record a success", exc_info=True)

    async def _wait_in_vain(self, delay: float | None) -> None:
        """Slow down a caller who would ask again at once."""
        if delay is None or delay >= time_left(self._ctx):
            return
        log = self.attempt.log
        clock = asyncio.get_running_loop().time
        started = clock()
        try:
            await asyncio.sleep(delay)
        finally:
            log.delay, log.delay_source = clock() - started, "backoff"

    def _note(self, refusal: Exception) -> None:
        self.refusal = refusal
        # An exception of somebody's own may refuse to be written on.
        with suppress(Exception):
            for link in (refusal, refusal.__context__):
                if isinstance(link, refusals()):
                    # A log may live for long, and frames hold bodies and responses.
                    link.__traceback__ = None

    async def _stop(self, reason: RetryStopReason) -> None:
        """Stop with the last outcome, or with the refusal where that is wanted."""
        if not RetryInfo.of(self._error).allows_retry:
            return
        self.stop_reason = reason
        if not self._config.raise_retry_error:
            return
        refusal = cast("Exception", self.refusal)
        with suppress(Exception):
            _chain(refusal, self._error)
        if self.response is not None:
            await discard(self.response, seconds=self._ctx.remaining())
        self.response, self.cause = None, refusal

    def _reason_of(self, refusal: Exception) -> RetryStopReason:
        if isinstance(refusal, BackoffExhaustedError):
            return RetryStopReason.BACKOFF_EXHAUSTED
        # Only who may have a token later says when.
        if RetryInfo.of(refusal).retry_after is not None:
            return RetryStopReason.LIMITER
        most = getattr(self._strategy, "max_attempts", None)
        if is_finite(most) and self._made >= most:
            return RetryStopReason.MAX_TOTAL_ATTEMPTS
        return RetryStopReason.NO_RETRY


async def _settled(answer: Any) -> Any:
    return await answer if inspect.isawaitable(answer) else answer


def _delay_of(token: Any, origin: str) -> float:
    if not hasattr(token, "retry_delay"):
        raise bad_argument(origin, token, "a token")
    delay = token.retry_delay
    if delay is None:
        return 0.0
    if not is_finite(delay) or delay < 0:
        raise bad_argument("retry_delay", delay, "seconds, finite and >= 0, or None")
    return delay


def _chain(refusal: Exception, error: CallError | None) -> None:
    """Let a refusal say what it is about, where its strategy did not."""
    # One exception may be raised again and again; then it has that of another call.
    if not isinstance(refusal.__cause__, CallError | None):
        return
    if all(link is not refusal for link in raised_from(error)):
        refusal.__cause__ = error
