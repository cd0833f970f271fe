"""Define the protocols of Smithy's retry strategies, tokens and errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard, cast, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from .._failures.hints import Fault

METHODS = (
    "acquire_initial_retry_token",
    "refresh_retry_token_for_retry",
    "record_success",
)
"""The methods of a strategy of Smithy's kind."""


class RetryToken(Protocol):
    """The token of one attempt of one call.

    Every object with the two attributes is one. A subclass declares them again, so that
    type checkers know them to be there, and is then made by keyword.

    Source: smithy-python, whose tokens are dataclasses, too.

    >>> from dataclasses import dataclass
    >>> @dataclass(kw_only=True)
    ... class MyToken(RetryToken):
    ...     retry_count: int
    ...     retry_delay: float
    ...     region: str
    >>> MyToken(retry_count=0, retry_delay=0.0, region="eu").region
    'eu'
    """

    retry_count: int
    """The attempts made before this one, 0 in an initial token."""

    retry_delay: float
    """Seconds to wait before the attempt."""


# Not as a decorator: type checkers would want the generated methods of every token.
dataclass(kw_only=True)(cast("Any", RetryToken))


class RetryBackoffStrategy(Protocol):
    """Computes how long to wait, from the number of the retry alone."""

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

    backoff_strategy: RetryBackoffStrategy
    """The strategy that computes the delays in the tokens."""

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
    """An error with retry information."""

    is_retry_safe: bool | None = None
    """True allows a retry, False forbids it; None if it is unknown."""

    retry_after: float | None = None
    """Seconds that the server asks to wait."""

    is_throttling_error: bool = False
    """Whether the server complains of too many requests."""

    is_timeout_error: bool = False
    """Whether time ran out."""


@runtime_checkable
class HasFault(Protocol):
    """An error with a ``fault``: the client's or the server's."""

    fault: Fault
    """The side that is at fault."""


class TokenSource(Protocol):
    """The three methods that the retrying client calls, for tokens of any class.

    A :class:`RetryStrategy` is one; so is a strategy without the attributes, or with
    tokens that are frozen.
    """

    def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> object:
        """Return the token of the first attempt, or an awaitable of it."""

    def refresh_retry_token_for_retry(
        self, *, token_to_renew: Any, error: Exception
    ) -> object:
        """Return the token of the next attempt, or an awaitable of it."""

    def record_success(self, *, token: Any) -> object:
        """Take back the token of an attempt that succeeded."""


def is_smithy_strategy(strategy: object) -> TypeGuard[TokenSource]:
    """Say whether an object is a strategy of Smithy's kind: it has the three methods.

    >>> is_smithy_strategy(RetryInfo())
    False
    """
    methods = (getattr(strategy, name, None) for name in METHODS)
    return all(map(callable, methods)) and not isinstance(strategy, type)
