"""The tokens that our own strategies hand out, each good for one use."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from .._errors import bad_argument
from .errors import RetryError
from .interfaces import RetryInfo

if TYPE_CHECKING:
    from .interfaces import RetryStrategy


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SimpleRetryToken:
    """The leave to make one attempt, given by a strategy.

    It is good for one refresh or one success, at the strategy that issued it. Do not
    make tokens yourself: no strategy would take them.
    """

    retry_count: int
    """The attempts made before this one, 0 in an initial token."""

    retry_delay: float
    """Seconds to wait before the attempt."""

    issuer: RetryStrategy | None = field(default=None, repr=False)
    """The strategy that issued it."""

    # Only one can ever acquire it, and it is never released: whoever does, uses the
    # token.
    _use: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    @property
    def attempt_count(self) -> int:
        """The number of the attempt that the token is for, from 1."""
        return self.retry_count + 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StandardRetryToken(SimpleRetryToken):
    """The same, from a strategy that pays for retries."""

    quota_acquired: int = 0
    """What this attempt was paid with, 0 in an initial token."""

    token_scope: str | None = None
    """What the quota that was asked is kept for."""


_T = TypeVar("_T", bound=SimpleRetryToken)


def use_token(name: str, token: object, kind: type[_T], issuer: RetryStrategy) -> _T:
    """Take a token back, once.

    Args:
        name: What to call it in an error.
        token: What was given as a token.
        kind: What it is to be.
        issuer: The strategy that has to have issued it.

    Raises:
        TypeError: It is no such token.
        ValueError: Another strategy has issued it, or it was used before.
    """
    if not isinstance(token, kind):
        raise TypeError(f"{name}: {token!r} (expected: a {kind.__name__})")
    if token.issuer is not issuer:
        raise bad_argument(name, token, "issued by this strategy")
    if not token._use.acquire(blocking=False):
        raise bad_argument(name, token, "not used before")
    return token


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


def check_token_scope(value: object) -> None:
    """Refuse an argument that names no scope."""
    if value is not None and not isinstance(value, str):
        raise bad_argument("token_scope", value, "a str, or None")
