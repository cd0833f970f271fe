"""Limit the attempts of a call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._errors import bad_argument
from .._failures.retry_info import RetryInfo
from .errors import RetryError

if TYPE_CHECKING:
    from .tokens import SimpleRetryToken


def next_retry_count(
    token: SimpleRetryToken, error: Exception, max_attempts: int
) -> int:
    """Return what the next token counts, if there may be one at all.

    Args:
        token: The token of the attempt that failed.
        error: What it failed with.
        max_attempts: Attempts of one call, the first one included.

    Raises:
        RetryError: The error allows no retry, or there were enough attempts. Raised
            from *error*.
    """
    if not RetryInfo.of(error).allows_retry:
        raise RetryError(f"the error allows no retry: {error!r}") from error
    if token.attempt_count >= max_attempts:
        raise RetryError(f"all attempts are made: {max_attempts}") from error
    return token.attempt_count


def check_max_attempts(value: object) -> None:
    """Refuse an argument that is no number of attempts."""
    if type(value) is not int or value < 1:
        raise bad_argument("max_attempts", value, "an int >= 1")
