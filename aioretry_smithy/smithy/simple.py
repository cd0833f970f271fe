"""The simple mode: a backoff and a limit of attempts, nothing shared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .simple_mode import SimpleMode

if TYPE_CHECKING:
    from .tokens import SimpleRetryToken


class SimpleRetryStrategy(SimpleMode):
    """Retries as long as errors and attempts allow, and waits in between.

    Nothing limits the retries of all calls together, so a server that is down gets
    *max_attempts* times its usual load: prefer :class:`StandardRetryStrategy`.

    Args:
        backoff_strategy: Computes the delays; ``ExponentialRetryBackoffStrategy()`` by
            default. A server that asks to be left alone for longer gets its wish.
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
        return self._issue(token_scope)

    async def refresh_retry_token_for_retry(
        self, *, token_to_renew: Any, error: Exception
    ) -> SimpleRetryToken:
        """Return the token of the next attempt.

        Args:
            token_to_renew: The token of the attempt that failed.
            error: What it failed with.

        Raises:
            RetryError: The error allows no retry, or there were enough attempts.
            TypeError: *token_to_renew* is none of our tokens.
            ValueError: It was issued by another strategy, or used before.
        """
        return self._renew(token_to_renew, error)

    async def record_success(self, *, token: Any) -> None:
        """Take back the token of an attempt that succeeded.

        Args:
            token: The token.

        Raises:
            TypeError: It is none of our tokens.
            ValueError: It was issued by another strategy, or used before.
        """
        self._succeed(token)
