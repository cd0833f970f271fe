"""The simple mode: a backoff and a limit of attempts, nothing shared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._retry_info import RetryInfo
from .attempts import check_max_attempts, next_retry_count
from .backoff import (
    ExponentialRetryBackoffStrategy,
    ask_for_delay,
    check_backoff_strategy,
)
from .scopes import check_token_scope
from .tokens import SimpleRetryToken, use_token

if TYPE_CHECKING:
    from .interfaces import RetryBackoffStrategy


class SimpleRetryStrategy:
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

    backoff_strategy: RetryBackoffStrategy
    """What computes the delays in the tokens."""

    max_attempts: int
    """Attempts of one call, the first one included."""

    def __init__(
        self,
        *,
        backoff_strategy: RetryBackoffStrategy | None = None,
        max_attempts: int = 5,
    ) -> None:
        if backoff_strategy is None:
            backoff_strategy = ExponentialRetryBackoffStrategy()
        check_backoff_strategy("backoff_strategy", backoff_strategy)
        check_max_attempts(max_attempts)
        self.backoff_strategy = backoff_strategy
        self.max_attempts = max_attempts

    async def acquire_initial_retry_token(
        self, *, token_scope: str | None = None
    ) -> SimpleRetryToken:
        """Return the token of the first attempt.

        Args:
            token_scope: Makes no difference here.
        """
        check_token_scope(token_scope)
        delay = ask_for_delay(self.backoff_strategy, 0)
        return SimpleRetryToken(retry_count=0, retry_delay=delay, _issuer=self)

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
        token = use_token("token_to_renew", token_to_renew, SimpleRetryToken, self)
        retry_count = next_retry_count(token, error, self.max_attempts)
        delay = ask_for_delay(self.backoff_strategy, retry_count, error)
        delay = max(delay, RetryInfo.of(error).retry_after or 0.0)
        return SimpleRetryToken(
            retry_count=retry_count, retry_delay=delay, _issuer=self
        )

    async def record_success(self, *, token: Any) -> None:
        """Take back the token of an attempt that succeeded.

        Args:
            token: The token.

        Raises:
            TypeError: It is none of our tokens.
            ValueError: It was issued by another strategy, or used before.
        """
        use_token("token", token, SimpleRetryToken, self)

    def __repr__(self) -> str:
        backoff = f"backoff_strategy={self.backoff_strategy!r}"
        return f"{type(self).__name__}({backoff}, max_attempts={self.max_attempts})"

    # Settings are copied by libraries that know nothing of tokens; a token is to find
    # its issuer in the copy.
    def __copy__(self) -> SimpleRetryStrategy:
        return self

    def __deepcopy__(self, memo: object) -> SimpleRetryStrategy:
        return self
