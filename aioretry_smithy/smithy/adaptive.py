"""The adaptive mode: the standard one, and no faster than the server lets one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .adaptive_mode import AdaptiveMode
from .standard import StandardRetryStrategy
from .steps import awaited

if TYPE_CHECKING:
    from .tokens import StandardRetryToken


class AdaptiveRetryStrategy(AdaptiveMode, StandardRetryStrategy):
    """The standard strategy with a rate limiter in front of every attempt.

    Once the server has throttled, attempts are sent only as fast as it lets through:
    see :class:`ClientRateLimiter`. Whoever is too early waits, inside of
    :meth:`acquire_initial_retry_token` and :meth:`refresh_retry_token_for_retry`: first
    for the delay of the backoff, then for the rate limiter. The delay in the token is 0
    then, so that the attempt is made at once.

    In a loop of your own, report each outcome: a failure by a refresh, a success by
    :meth:`record_success`. The rate limiter learns from both.

    Args:
        profile: See :class:`StandardRetryStrategy`, here and below.
        backoff_strategy: Computes the delays.
        throttling_backoff_strategy: The same for errors that throttle.
        max_attempts: Attempts of one call, the first one included.
        retry_quota: Pays for all retries.
        long_polling: Whether a retry that is refused is waited for all the same.
        rate_limiter: Limits all attempts, also those of other strategies that have it.
            None: a rate limiter for each scope, up to 1024 of them.
        fail_fast: Whether to refuse instead of waiting: a call by a
            :exc:`CapacityNotAvailableError`, a retry by a :exc:`RetryError`. A retry
            then has its leave before its delay, which is in its token. Not together
            with *long_polling*, which is waiting.

    Raises:
        ValueError: An argument is not as described.

    Source: the ``adaptive`` mode of the AWS SDKs, which smithy-python does not have.

    >>> async def call():
    ...     strategy = AdaptiveRetryStrategy()
    ...     token = await strategy.acquire_initial_retry_token()
    ...     error = CallError("429", is_throttling_error=True)
    ...     token = await strategy.refresh_retry_token_for_retry(
    ...         token_to_renew=token, error=error
    ...     )
    ...     await strategy.record_success(token=token)
    ...     return token.retry_delay, strategy.limiter_for().enabled
    >>> with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
    ...     runner.run(call())
    (0.0, True)
    """

    async def acquire_initial_retry_token(
        self, *, token_scope: str | None = None
    ) -> StandardRetryToken:
        """Return the token of the first attempt, when the rate limiter grants it.

        Args:
            token_scope: What the calls have in common that share a quota and a rate.

        Raises:
            CapacityNotAvailableError: It does not grant it now, and *fail_fast* is
                True.
        """
        return await awaited(self._acquiring(token_scope))
