"""One call whose retries a strategy of Smithy's kind decides about."""

from __future__ import annotations

import asyncio
import inspect
import logging
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from .._errors import FailFastError, bad_argument, is_finite
from .._keys import host_key
from .._response import discard
from ..smithy.adaptive import AdaptiveRetryStrategy
from ..smithy.classify import classify
from ..smithy.error_code import read_error_code
from ..smithy.errors import (
    BackoffExhaustedError,
    CapacityNotAvailableError,
    refusals,
)
from ..smithy.failure import Failure
from ..smithy.interfaces import RetryInfo
from ..smithy.rate_limiter import LONGEST_SLEEP
from ..smithy.standard import StandardRetryStrategy
from .session import RetrySession, Wait
from .stop_reason import RetryStopReason

if TYPE_CHECKING:
    from .._context import ClientRequestContext
    from .._request import HttpRequest
    from ..smithy.errors import CallError
    from ..smithy.interfaces import RetryToken
    from ..smithy.rate_limiter import ClientRateLimiter
    from ..smithy.tokens import StandardRetryToken
    from .config import RetryConfig

logger = logging.getLogger("aioretry_smithy")

_METHODS = (
    "acquire_initial_retry_token",
    "refresh_retry_token_for_retry",
    "record_success",
)


class TokenSession(RetrySession):
    """Asks for a token before each attempt, and gives the last one back on success.

    The strategies of this library are asked by way of what their methods are made of,
    which does not wait: here, waits are bounded by the deadline and seen in the log.
    """

    __slots__ = (
        "_error",
        "_limiter",
        "_own",
        "_strategy",
        "_token",
        "_waits_for_rate",
    )

    def __init__(
        self, config: RetryConfig, ctx: ClientRequestContext, request: HttpRequest
    ) -> None:
        super().__init__(config, ctx, request)
        strategy: Any = config.strategy
        kind: Any = type(strategy)
        self._strategy = strategy
        self._own: StandardRetryStrategy | None = (
            strategy if _keeps_methods(kind) else None
        )
        self._limiter: ClientRateLimiter | None = None
        self._waits_for_rate = False
        self._token: RetryToken | None = None
        self._error: CallError | None = None

    async def open(self) -> Wait | None:
        """Acquire the initial token; without one, the call makes one attempt."""
        scope = host_key(self._request)
        try:
            self._token = await self._acquire(scope)
        except refusals() as refusal:
            self._ctx.log.root.retry_error = refusal
            return None
        delay = _delay_of(self._token)
        if delay and delay >= self._ctx.remaining():
            self._time_out()
            return None
        strategy = self._own
        if isinstance(strategy, AdaptiveRetryStrategy):
            self._limiter = strategy.limiter_for(scope)
            self._waits_for_rate = not strategy.fail_fast
        if delay:
            return Wait(delay, "backoff")
        return None if self._is_granted() else Wait(0.0, "rate_limit")

    async def _acquire(self, scope: str | None) -> RetryToken:
        if self._own is not None:
            return self._own._issue(scope)
        acquire = self._strategy.acquire_initial_retry_token
        token: RetryToken = await _settled(acquire(token_scope=scope))
        return token

    def _is_granted(self) -> bool:
        """Ask the rate limiter for the first attempt."""
        wait = 0.0 if self._limiter is None else self._limiter.try_acquire()
        if wait and not self._waits_for_rate:
            self.stop_reason = RetryStopReason.LIMITER
            raise CapacityNotAvailableError(wait)
        return wait == 0.0

    async def admit(self) -> float:
        """Wait until the rate limiter grants an attempt, or until time runs out."""
        limiter = self._limiter
        if limiter is None or not self._waits_for_rate:
            return 0.0
        clock = asyncio.get_running_loop().time
        started = clock()
        while wait := limiter.try_acquire():
            if wait >= self._ctx.remaining():
                self._time_out()
                break
            await asyncio.sleep(min(wait, LONGEST_SLEEP))
        return clock() - started

    async def ask(self) -> bool:
        """Classify a failure, or tell the strategy of a success."""
        code = await self._read(read_error_code) if self._reads() else None
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
        is_retryable = RetryInfo.of(error).allows_retry
        if self._token is None:
            if is_retryable:
                await self._end(RetryStopReason.LIMITER)
            return False
        # The strategy has the last word, but where there is no attempt left to give.
        return is_retryable or self._made < self._config.max_total_attempts

    async def next_delay(self) -> float | None:
        """Exchange the token for that of the next attempt."""
        # What nobody could wait for costs nothing.
        if isinstance(reason := self._fit(0.0), RetryStopReason):
            self.stop_reason = reason
            return None
        try:
            self._token = await self._renew()
        except refusals() as refusal:
            await self._refuse(refusal)
            return None
        return _delay_of(self._token)

    def fit(self, delay: float | None) -> Wait | None:
        """Do as for all; a retry that there is no time for is paid back."""
        wait = super().fit(delay)
        if wait is None and delay is not None and self._own is not None:
            self._own._take_back(cast("StandardRetryToken", self._token))
        return wait

    def _reads(self) -> bool:
        response = self.response
        return self._config.buffer_response or (
            response is not None and response.status >= 400
        )

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

    async def _renew(self) -> RetryToken:
        error = cast("CallError", self._error)
        if self._own is not None:
            return self._own._renew(self._token, error)
        refresh = self._strategy.refresh_retry_token_for_retry
        token: RetryToken = await _settled(
            refresh(token_to_renew=self._token, error=error)
        )
        return token

    async def _refuse(self, refusal: Exception) -> None:
        self._ctx.log.root.retry_error = refusal
        if self._own is not None and self._own.long_polling:
            await self._wait_in_vain(getattr(refusal, "retry_after", None))
        await self._end(self._reason_of(refusal))

    async def _wait_in_vain(self, delay: float | None) -> None:
        """Slow down a caller who would ask again at once."""
        if delay is None or delay >= self._ctx.remaining():
            return
        log = self.attempt.log
        clock = asyncio.get_running_loop().time
        started = clock()
        try:
            await asyncio.sleep(delay)
        finally:
            log.delay, log.delay_source = clock() - started, "backoff"

    async def _end(self, reason: RetryStopReason) -> None:
        self.stop_reason = reason
        if reason is RetryStopReason.NO_RETRY or not self._config.raise_retry_error:
            return
        refusal = cast("Exception", self._ctx.log.root.retry_error)
        refusal.__cause__ = refusal.__cause__ or self._error
        if self.response is not None:
            await discard(self.response)
        self.response, self.cause = None, refusal

    def _reason_of(self, refusal: Exception) -> RetryStopReason:
        if isinstance(refusal, BackoffExhaustedError):
            return RetryStopReason.BACKOFF_EXHAUSTED
        # Only who may have a token later says when.
        if getattr(refusal, "retry_after", None) is not None:
            return RetryStopReason.LIMITER
        most = getattr(self._strategy, "max_attempts", None)
        is_last = is_finite(most) and self._made >= most
        if is_last and RetryInfo.of(self._error).allows_retry:
            return RetryStopReason.MAX_TOTAL_ATTEMPTS
        return RetryStopReason.NO_RETRY


@cache
def _keeps_methods(kind: Any) -> bool:
    """Say whether what a strategy does is what this library's own does."""
    for ours in (AdaptiveRetryStrategy, StandardRetryStrategy):
        if issubclass(kind, ours):
            return all(getattr(kind, name) is getattr(ours, name) for name in _METHODS)
    return False


async def _settled(answer: Any) -> Any:
    return await answer if inspect.isawaitable(answer) else answer


def _delay_of(token: RetryToken | None) -> float:
    delay = getattr(token, "retry_delay", None)
    if not is_finite(delay) or delay < 0:
        raise bad_argument("retry_delay", delay, "seconds, finite and >= 0")
    return delay
