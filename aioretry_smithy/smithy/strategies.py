"""The strategies of each mode, with ``async`` methods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .token_rules import AdaptiveMode, SimpleMode, StandardMode

if TYPE_CHECKING:
    from .tokens import SimpleRetryToken, StandardRetryToken


class SimpleRetryStrategy(SimpleMode):
    """Retries as long as errors and attempts allow, and waits in between.

    Nothing limits the retries of all calls together, so a server that is down gets
    *max_attempts* times its usual load: prefer :class:`StandardRetryStrategy`.

    Args:
        backoff_strategy: Computes the delays; ``ExponentialRetryBackoffStrategy()`` by
            default. If the server asks for a longer wait, that is the delay.
        max_attempts: Attempts of one call, the first one included, >= 1.

    Raises:
        ValueError: An argument is not as described.

    Source: smithy-python, which does not look at ``retry_after``.

    >>> SimpleRetryStrategy(max_attempts=3).max_attempts
    3
    """

    async def acquire_initial_retry_token(
        self, *, token_scope: str | None = None
    ) -> SimpleRetryToken:
        """Return the token of the first attempt.

        Args:
            token_scope: Makes no difference here.
        """
        return self._acquire(token_scope)

    async def refresh_retry_token_for_retry(
        self, *, token_to_renew: Any, error: Exception
    ) -> SimpleRetryToken:
        """Return the token of the next attempt.

        Args:
            token_to_renew: The token of the attempt that failed.
            error: What it failed with.

        Raises:
            RetryError: The error allows no retry, or there were enough attempts.
            TypeError: *token_to_renew* is no token of this library.
            ValueError: It was issued by another strategy, or used before.
        """
        return self._refresh(token_to_renew, error)

    async def record_success(self, *, token: Any) -> None:
        """Take back the token of an attempt that succeeded.

        Args:
            token: The token.

        Raises:
            TypeError: *token* is no token of this library.
            ValueError: It was issued by another strategy, or used before.
        """
        self._record_success(token)


class StandardRetryStrategy(StandardMode):
    """Retries as long as error, attempts and quota allow, and waits in between.

    After a failed attempt it asks, in this order: does the error allow a retry, are
    there attempts left, can the quota pay. It pays only if all three allow the retry.

    Before retry *n* the delay is ``random() * min(scale * 2 ** (n - 1), max_backoff)``,
    where *scale* is greater if the server throttles. If the server asks for a longer
    wait, the delay grows to that, but by no more than ``max_added_delay`` (where the
    profile has none: no further than ``max_backoff``).

    A success refunds what the last retry of the call has cost, or what the profile
    says; a success without any retry adds ``no_retry_increment``.

    Calls, sessions, event loops and threads may share one strategy. A copy of it is
    the strategy itself.

    Args:
        profile: The constants. The prices and refunds among them are for the quotas
            that the strategy makes: a *retry_quota* has a profile of its own.
        backoff_strategy: Computes the delays, in place of the profile's.
        throttling_backoff_strategy: The same for errors that throttle, for which
            *backoff_strategy* is not asked.
        max_attempts: Attempts of one call, the first one included, >= 1; by default
            what the profile says.
        retry_quota: Pays for all retries, also those of other strategies that have it,
            at the prices of its own profile. None: a quota of 500 tokens for each
            scope, up to 1024 scopes, at the prices of *profile*.
        long_polling: Whether to wait for the delay of a retry that the quota refuses,
            before the call fails. For calls in an endless loop, which would otherwise
            not wait at all.

    Raises:
        ValueError: An argument is not as described.

    Source: the AWS SDKs and smithy-python, whose class of this name it is.

    >>> async def call():
    ...     strategy = StandardRetryStrategy(max_attempts=2)
    ...     token = await strategy.acquire_initial_retry_token()
    ...     error = CallError("503", fault="server")
    ...     token = await strategy.refresh_retry_token_for_retry(
    ...         token_to_renew=token, error=error
    ...     )
    ...     await strategy.record_success(token=token)
    ...     return token.attempt_count, token.quota_acquired
    >>> asyncio.run(call())
    (2, 14)
    """

    async def acquire_initial_retry_token(
        self, *, token_scope: str | None = None
    ) -> StandardRetryToken:
        """Return the token of the first attempt.

        Args:
            token_scope: What the calls have in common that share a quota and a rate.

        Raises:
            CapacityNotAvailableError: The rate limiter of an adaptive strategy does not
                grant it now, and *fail_fast* is True.
        """
        return await self._wait_to_acquire(token_scope)

    async def refresh_retry_token_for_retry(
        self, *, token_to_renew: Any, error: Exception
    ) -> StandardRetryToken:
        """Return the token of the next attempt.

        Args:
            token_to_renew: The token of the attempt that failed.
            error: What it failed with.

        Raises:
            RetryError: The error allows no retry, there were enough attempts, or the
                quota is exhausted. Its ``retry_after`` is None, except in the last
                case: then it is the delay that there would have been.
            TypeError: *token_to_renew* is no token of this library.
            ValueError: It was issued by another strategy, or used before.
        """
        return await self._wait_to_refresh(token_to_renew, error)

    async def record_success(self, *, token: Any) -> None:
        """Take back the token of an attempt that succeeded, and refund it.

        Args:
            token: The token.

        Raises:
            TypeError: *token* is no token of this library.
            ValueError: It was issued by another strategy, or used before.
        """
        self._record_success(token)


class AdaptiveRetryStrategy(AdaptiveMode, StandardRetryStrategy):
    """The standard strategy with a rate limiter in front of every attempt.

    Once the server has throttled, attempts are sent only as fast as it lets through:
    see :class:`ClientRateLimiter`. A call that is too early waits inside
    :meth:`acquire_initial_retry_token` and :meth:`refresh_retry_token_for_retry`: first
    for the delay of the backoff, then for the rate limiter. The delay in the token is
    then 0, so make the attempt at once.

    In a loop of your own, report each outcome: a failure by a refresh, a success by
    :meth:`record_success`. The rate limiter learns from both.

    Args:
        rate_limiter: Limits all attempts, also those of other strategies that have it.
            None: a rate limiter for each scope, up to 1024 of them.
        fail_fast: Whether to refuse instead of waiting: a call by a
            :exc:`CapacityNotAvailableError`, a retry by a :exc:`RetryError`. A retry is
            then granted before its delay, which is in its token. Not together with
            *long_polling*, which waits.
        settings: The arguments of :class:`StandardRetryStrategy`.

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
