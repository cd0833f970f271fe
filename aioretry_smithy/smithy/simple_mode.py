"""The rules of the simple mode: which token follows, without the waiting."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._errors import bad_argument
from .._failures.retry_info import RetryInfo
from .._shown import shown
from .backoff import (
    ExponentialRetryBackoffStrategy,
    ask_for_delay,
    check_backoff_strategy,
)
from .errors import RetryError
from .scopes import check_token_scope
from .shared import NeverCopied
from .tokens import SimpleRetryToken, use_token

if TYPE_CHECKING:
    from .interfaces import RetryBackoffStrategy


class SimpleMode(NeverCopied):
    """Says which token follows, and when: the simple mode without its methods."""

    backoff_strategy: RetryBackoffStrategy
    """The strategy that computes the delays in the tokens."""

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

    def _acquire(self, token_scope: str | None) -> SimpleRetryToken:
        """Return the token of the first attempt."""
        check_token_scope(token_scope)
        delay = ask_for_delay(self.backoff_strategy, 0)
        return SimpleRetryToken(retry_count=0, retry_delay=delay, _issuer=self)

    def _refresh(self, token_to_renew: object, error: Exception) -> SimpleRetryToken:
        """Return the token of the next attempt."""
        token = use_token("token_to_renew", token_to_renew, SimpleRetryToken, self)
        retry_count = self._next_retry_count(token, error)
        delay = ask_for_delay(self.backoff_strategy, retry_count, error)
        delay = max(delay, RetryInfo.of(error).retry_after or 0.0)
        return SimpleRetryToken(
            retry_count=retry_count, retry_delay=delay, _issuer=self
        )

    def _record_success(self, token: object) -> None:
        """Take back the token of an attempt that succeeded."""
        use_token("token", token, SimpleRetryToken, self)

    def _next_retry_count(self, token: SimpleRetryToken, error: Exception) -> int:
        """Return what the next token counts, if error and attempts allow a retry."""
        if not RetryInfo.of(error).allows_retry:
            raise RetryError(f"the error allows no retry: {shown(error)}") from error
        if token.attempt_count >= self.max_attempts:
            raise RetryError(f"all attempts are made: {self.max_attempts}") from error
        return token.attempt_count

    def _settings(self) -> dict[str, object]:
        """Return the arguments that make such a strategy, for people to read."""
        return {
            "backoff_strategy": self.backoff_strategy,
            "max_attempts": self.max_attempts,
        }

    def __repr__(self) -> str:
        settings = (f"{name}={value!r}" for name, value in self._settings().items())
        return f"{type(self).__name__}({', '.join(settings)})"


def check_max_attempts(value: object) -> None:
    """Refuse an argument that is no number of attempts."""
    if type(value) is not int or value < 1:
        raise bad_argument("max_attempts", value, "an int >= 1")
