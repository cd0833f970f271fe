"""The standard mode: a backoff, a limit of attempts, a quota that pays for retries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .standard_mode import StandardMode
from .steps import awaited

if TYPE_CHECKING:
    from .tokens import StandardRetryToken


class StandardRetryStrategy(StandardMode):
    """Retries as long as error, attempts and quota allow, and waits in between.

    After a failed attempt, in this order: does the error allow a retry, are there
    attempts left, how long is the delay, can the quota pay. Nothing is paid where one
    of the first two says no.

    Before retry *n* the delay is ``random() * min(scale * 2 ** (n - 1), max_backoff)``,
    where *scale* is greater if the server throttles. A server that asks to be left
    alone for longer gets its wish, but the delay does not grow by more than
    ``max_added_delay`` (where the profile has none: no further than ``max_backoff``).

    A success brings back what the last retry of the call has cost, or what the profile
    says; one without any retry brings a little.

    Calls, sessions, event loops and threads may share one strategy. A copy of it is
    the strategy itself.

    Args:
        profile: The constants. The prices and refunds among them are for the quotas
            that the strategy makes: a *retry_quota* has a profile of its own.
        backoff_strategy: Computes the delays, in place of the profile's.
        throttling_backoff_strategy: The same for errors that throttle. It has its own
            default: a *backoff_strategy* says nothing about them.
        max_attempts: Attempts of one call, the first one included, >= 1; by default
            what the profile says.
        retry_quota: Pays for all retries, also those of other strategies that have it,
            at the prices of its own profile. None: a quota of 500 for each scope, up
            to 1024 of them, at those of *profile*.
        long_polling: Whether a retry that the quota refuses is waited for all the
            same, before the call fails. For calls in a loop that never ends, which
            would not wait at all otherwise.

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
        """Return the token of the first attempt; there always is one.

        Args:
            token_scope: What the calls have in common that share a quota.
        """
        return self._issue(token_scope)

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
            TypeError: *token_to_renew* is none of our tokens.
            ValueError: It was issued by another strategy, or used before.
        """
        return await awaited(self._refreshing(token_to_renew, error))

    async def record_success(self, *, token: Any) -> None:
        """Take back the token of an attempt that succeeded, and refund it.

        Args:
            token: The token.

        Raises:
            TypeError: It is none of our tokens.
            ValueError: It was issued by another strategy, or used before.
        """
        self._succeed(token)
