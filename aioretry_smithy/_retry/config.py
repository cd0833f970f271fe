"""The settings of a retrying client."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import TypedDict

from .._errors import bad_argument, is_finite
from .content_strategy import RetryStrategyWithContent
from .strategy import RetryStrategy

_ENVIRONMENT_VARIABLE = "AIORETRY_SMITHY_DEFAULT_MAX_TOTAL_ATTEMPTS"
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


class RetrySettings(TypedDict, total=False):
    """The keyword arguments of :class:`RetryConfig`."""

    max_total_attempts: int
    attempt_timeout: float | None
    use_retry_after: bool
    max_retry_after: float | None
    buffer_response: bool
    retry_count_header: str | None


def default_max_total_attempts() -> int:
    """Return the attempts allowed for one call where nobody says otherwise.

    10, or the environment variable ``AIORETRY_SMITHY_DEFAULT_MAX_TOTAL_ATTEMPTS``.

    Raises:
        ValueError: The variable is not a positive integer.
    """
    text = os.environ.get(_ENVIRONMENT_VARIABLE)
    if not text:
        return 10
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text) > 0):
        raise bad_argument(_ENVIRONMENT_VARIABLE, text, "a positive integer")
    return int(text)


@dataclass(frozen=True, slots=True)
class RetryConfig:
    """How a retrying client retries.

    Args:
        strategy: Decides after each attempt.
        max_total_attempts: Attempts of one call, the first one included, >= 1. Unless
            given: 10, or what the environment variable
            ``AIORETRY_SMITHY_DEFAULT_MAX_TOTAL_ATTEMPTS`` says.
        attempt_timeout: Seconds that one attempt may take, to the end of the body, > 0.
            The body of the last response is read under it too; for long downloads
            limit the silence with ``ClientTimeout(sock_read=...)`` instead. None: no
            limit but that of the call.
        use_retry_after: Whether to wait at least as long as the server asks for in
            ``Retry-After`` or ``x-amz-retry-after``.
        max_retry_after: A server that asks for more seconds than this ends the call
            with its response, >= 0. None: only the deadline limits it.
        buffer_response: Whether the body of each response is read inside its attempt,
            to its end and into memory. A body that is cut or stalls is then a failed
            attempt; otherwise it reaches the caller as in aiohttp.
        retry_count_header: The header that tells the server how many attempts were made
            before this one, from the second attempt on. None: no such header.

    Raises:
        ValueError: An argument is out of range.

    >>> RetryConfig(RetryStrategy.never(), max_total_attempts=0)
    Traceback (most recent call last):
        ...
    ValueError: max_total_attempts: 0 (expected: an integer >= 1)
    """

    strategy: RetryStrategy | RetryStrategyWithContent
    """Decides after each attempt."""

    max_total_attempts: int = field(
        default_factory=default_max_total_attempts, kw_only=True
    )
    """Attempts of one call, the first one included."""

    attempt_timeout: float | None = field(default=None, kw_only=True)
    """Seconds that one attempt may take."""

    use_retry_after: bool = field(default=True, kw_only=True)
    """Whether to wait at least as long as the server asks for."""

    max_retry_after: float | None = field(default=60.0, kw_only=True)
    """The longest wait in seconds that a server may ask for."""

    buffer_response: bool = field(default=False, kw_only=True)
    """Whether the body of each response is read inside its attempt."""

    retry_count_header: str | None = field(default="armeria-retry-count", kw_only=True)
    """The header that counts the attempts made before."""

    reads_bodies: bool = field(init=False, repr=False, compare=False)
    """Whether a body is read before the strategy is asked."""

    def __post_init__(self) -> None:
        looks = _looks_at_content(self.strategy)
        attempts = self.max_total_attempts
        if type(attempts) is not int or attempts < 1:
            raise bad_argument("max_total_attempts", attempts, "an integer >= 1")
        timeout = self.attempt_timeout
        if timeout is not None and not (is_finite(timeout) and timeout > 0):
            raise bad_argument("attempt_timeout", timeout, "finite and > 0, or None")
        obey: object = self.use_retry_after
        if not isinstance(obey, bool):
            raise bad_argument("use_retry_after", obey, "True or False")
        longest = self.max_retry_after
        if longest is not None and not (is_finite(longest) and longest >= 0):
            raise bad_argument("max_retry_after", longest, "finite and >= 0, or None")
        buffer: object = self.buffer_response
        if not isinstance(buffer, bool):
            raise bad_argument("buffer_response", buffer, "True or False")
        header: object = self.retry_count_header
        if header is not None and not (
            isinstance(header, str) and _HEADER_NAME.fullmatch(header)
        ):
            raise bad_argument("retry_count_header", header, "a header name, or None")
        # Said once here, so that strategies that need no body cost nothing more.
        object.__setattr__(self, "reads_bodies", looks or buffer)

    @property
    def retries(self) -> bool:
        """Whether there can be a second attempt at all."""
        return (
            self.max_total_attempts > 1 and self.strategy is not RetryStrategy.never()
        )


def _looks_at_content(strategy: object) -> bool:
    if isinstance(strategy, RetryStrategyWithContent):
        length = strategy.max_content_length
        if type(length) is not int or length < 1:
            raise bad_argument("max_content_length", length, "an integer >= 1")
        return True
    if not isinstance(strategy, RetryStrategy):
        kinds = "a RetryStrategy or a RetryStrategyWithContent"
        raise bad_argument("strategy", strategy, kinds)
    return False
