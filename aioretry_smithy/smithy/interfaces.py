"""What Smithy's retry strategies, their tokens and their errors look like."""

from __future__ import annotations

from typing import (
    TYPE_CHECKING,
    Any,
    Protocol,
    TypeGuard,
    runtime_checkable,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from .._retry_info import Fault

METHODS = (
    "acquire_initial_retry_token",
    "refresh_retry_token_for_retry",
    "record_success",
)
"""What a strategy of Smithy's kind can do."""


class RetryToken(Protocol):
    """What a strategy hands out for one attempt of one call."""

    # To type checkers the attributes of these protocols can only be read, so that
    # frozen classes fit too. At run time they are no properties: a subclass, which may
    # well be a dataclass, has to be able to set them.
    if TYPE_CHECKING:

        @property
        def retry_count(self) -> int:
            """The attempts made before this one, 0 in an initial token."""

        @property
        def retry_delay(self) -> float:
            """Seconds to wait before the attempt."""

    else:
        retry_count: int
        """The attempts made before this one, 0 in an initial token."""

        retry_delay: float
        """Seconds to wait before the attempt."""


class RetryBackoffStrategy(Protocol):
    """Says how long to wait, from the number of the attempt alone."""

    def compute_next_backoff_delay(self, retry_attempt: int) -> float:
        """Return the seconds to wait before an attempt.

        Args:
            retry_attempt: The number of the retry, from 1; 0 is the initial attempt.
        """


@runtime_checkable
class RetryStrategy(Protocol):
    """Decides about retries by handing out tokens; plain or ``async``.

    One token for each attempt: an initial one before the first, a renewed one before
    each retry. A strategy that has none to give raises a :class:`RetryError`. What a
    call needs to remember is in its tokens, so one strategy serves any number of calls.

    Source: smithy-python, whose methods are ``async`` today and were plain in its
    design document. Both are welcome.
    """

    if TYPE_CHECKING:

        @property
        def backoff_strategy(self) -> RetryBackoffStrategy:
            """What computes the delays in the tokens."""

        @property
        def max_attempts(self) -> int:
            """Attempts of one call, the first one included."""

    else:
        backoff_strategy: RetryBackoffStrategy
        """What computes the delays in the tokens."""

        max_attempts: int
        """Attempts of one call, the first one included."""

    def acquire_initial_retry_token(
        self, *, token_scope: str | None = None
    ) -> RetryToken | Awaitable[RetryToken]:
        """Return the token of the first attempt.

        Args:
            token_scope: What calls have in common, where a strategy keeps several
                kinds of calls apart. The retrying client passes ``host:port``.

        Raises:
            RetryError: There is none. The call makes one attempt and no retry.
        """

    def refresh_retry_token_for_retry(
        self, *, token_to_renew: Any, error: Exception
    ) -> RetryToken | Awaitable[RetryToken]:
        """Return the token of the next attempt.

        Args:
            token_to_renew: The token of the attempt that failed.
            error: What it failed with. Read it with :class:`RetryInfo`.

        Raises:
            RetryError: There is to be no further attempt.
        """

    def record_success(self, *, token: Any) -> Awaitable[None] | None:
        """Take back the token of an attempt that succeeded."""


@runtime_checkable
class ErrorRetryInfo(Protocol):
    """An error that knows what it means for a retry."""

    if TYPE_CHECKING:

        @property
        def is_retry_safe(self) -> bool | None:
            """True allows a retry, False forbids it; None where nobody can tell."""

        @property
        def retry_after(self) -> float | None:
            """Seconds that the server asks to be left alone."""

        @property
        def is_throttling_error(self) -> bool:
            """Whether the server complains of too many requests."""

        @property
        def is_timeout_error(self) -> bool:
            """Whether time ran out."""

    else:
        is_retry_safe: bool | None = None
        """True allows a retry, False forbids it; None where nobody can tell."""

        retry_after: float | None = None
        """Seconds that the server asks to be left alone."""

        is_throttling_error: bool = False
        """Whether the server complains of too many requests."""

        is_timeout_error: bool = False
        """Whether time ran out."""


@runtime_checkable
class HasFault(Protocol):
    """An error that knows whose fault it is."""

    if TYPE_CHECKING:

        @property
        def fault(self) -> Fault:
            """Whose fault it is."""

    else:
        fault: Fault
        """Whose fault it is."""


def hands_out_tokens(strategy: object) -> TypeGuard[RetryStrategy]:
    """Say whether an object is a strategy of Smithy's kind: it has the three methods.

    >>> hands_out_tokens(RetryInfo())
    False
    """
    methods = (getattr(strategy, name, None) for name in METHODS)
    return all(map(callable, methods)) and not isinstance(strategy, type)
