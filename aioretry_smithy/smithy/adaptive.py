"""The adaptive mode: the standard one, and no faster than the server lets one."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from .._errors import bad_argument
from .errors import CapacityNotAvailableError, RetryError
from .profile import RetryProfile
from .rate_limiter import ClientRateLimiter
from .scopes import PerScope
from .standard import StandardRetryStrategy

if TYPE_CHECKING:
    from .interfaces import RetryBackoffStrategy
    from .quota import StandardRetryQuota
    from .tokens import StandardRetryToken


class AdaptiveRetryStrategy(StandardRetryStrategy):
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

    fail_fast: Final[bool]
    """Whether to refuse instead of waiting for the rate limiter."""

    def __init__(
        self,
        *,
        profile: RetryProfile = RetryProfile.V2_1,
        backoff_strategy: RetryBackoffStrategy | None = None,
        throttling_backoff_strategy: RetryBackoffStrategy | None = None,
        max_attempts: int | None = None,
        retry_quota: StandardRetryQuota | None = None,
        long_polling: bool = False,
        rate_limiter: ClientRateLimiter | None = None,
        fail_fast: bool = False,
    ) -> None:
        super().__init__(
            profile=profile,
            backoff_strategy=backoff_strategy,
            throttling_backoff_strategy=throttling_backoff_strategy,
            max_attempts=max_attempts,
            retry_quota=retry_quota,
            long_polling=long_polling,
        )
        if not (rate_limiter is None or isinstance(rate_limiter, ClientRateLimiter)):
            expected = "a ClientRateLimiter, or None"
            raise bad_argument("rate_limiter", rate_limiter, expected)
        if not isinstance(fail_fast, bool):
            raise bad_argument("fail_fast", fail_fast, "True or False")
        if fail_fast and long_polling:
            raise bad_argument("fail_fast", fail_fast, "False with long_polling=True")
        self.fail_fast = fail_fast
        self._limiters = PerScope(ClientRateLimiter, rate_limiter)

    def limiter_for(self, token_scope: str | None = None) -> ClientRateLimiter:
        """Return the rate limiter of a scope.

        Args:
            token_scope: What :meth:`acquire_initial_retry_token` got; the retrying
                client passes ``host:port``. None is the scope without a name.

        Raises:
            ValueError: *token_scope* is no str, nor None.

        >>> AdaptiveRetryStrategy().limiter_for("example.com:443").enabled
        False
        """
        return self._limiters.get(token_scope)

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
        token = self._issue(token_scope)
        if not self.fail_fast:
            return await self._admit(token)
        if wait := self.limiter_for(token_scope).try_acquire():
            raise CapacityNotAvailableError(wait)
        return token

    async def refresh_retry_token_for_retry(
        self, *, token_to_renew: Any, error: Exception
    ) -> StandardRetryToken:
        """Return the token of the next attempt, when the rate limiter grants it.

        Args:
            token_to_renew: The token of the attempt that failed.
            error: What it failed with.

        Raises:
            RetryError: The error allows no retry, there were enough attempts, the quota
                is exhausted, or the rate limiter grants nothing now and *fail_fast* is
                True. In the last two cases its ``retry_after`` is not None.
            TypeError: *token_to_renew* is none of our tokens.
            ValueError: It was issued by another strategy, or used before.
        """
        token = await super().refresh_retry_token_for_retry(
            token_to_renew=token_to_renew, error=error
        )
        return token if self.fail_fast else await self._admit(token)

    def _report(self, token: StandardRetryToken, *, throttled: bool) -> None:
        self.limiter_for(token.token_scope).update(throttled=throttled)

    def _next_token(
        self, token: StandardRetryToken, error: Exception
    ) -> StandardRetryToken:
        following = super()._next_token(token, error)
        if not self.fail_fast:
            return following
        wait = self.limiter_for(following.token_scope).try_acquire()
        if not wait:
            return following
        self._take_back(following)
        refusal = CapacityNotAvailableError(wait)
        raise RetryError(str(refusal), retry_after=wait) from error

    async def _admit(self, token: StandardRetryToken) -> StandardRetryToken:
        """Wait for the delay and for the rate limiter, in place of the caller."""
        if token.retry_delay:
            await asyncio.sleep(token.retry_delay)
            token = replace(token, retry_delay=0.0)
        await self.limiter_for(token.token_scope).acquire()
        return token

    def _settings(self) -> dict[str, object]:
        settings = super()._settings()
        if self._limiters.given is not None:
            settings["rate_limiter"] = self._limiters.given
        if self.fail_fast:
            settings["fail_fast"] = True
        return settings
