"""Define the protocols of Smithy's retry strategies, and the errors that they raise."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard, cast, runtime_checkable

from .._errors import UnprocessedRequestError

# Who derives a dataclass from these may ask for the types of its fields.
from .._failures.hints import Fault  # noqa: TC001

if TYPE_CHECKING:
    from collections.abc import Awaitable


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


class RetryError(Exception):
    """No retry token was available.

    Where smithy-python is in use too, instances are also of its class of this name, so
    that its loops understand the strategies of this library.

    Args:
        message: Why there is none.
        retry_after: Seconds after which there may be one again, or None.

    >>> RetryError("the quota is exhausted", retry_after=1.5).retry_after
    1.5
    """

    retry_after: float | None
    """Seconds after which there may be a token again, or None."""

    def __new__(cls, *args: object, **options: object) -> RetryError:
        """Make an instance of smithy-python's class, too, if loaded."""
        kind: Any = cls
        theirs = _retry_error_of_smithy_python()
        if theirs is not None and not issubclass(kind, theirs):
            kind = _known_to_both(kind, theirs)
        error: RetryError = super().__new__(kind, *args)
        return error

    def __init__(self, message: str = "", *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class BackoffExhaustedError(RetryError):
    """The :class:`.Backoff` behind a backoff strategy has no further delay."""


class CapacityNotAvailableError(UnprocessedRequestError):
    """The rate limiter grants no attempt now, and the strategy does not wait.

    Raised for the first attempt of a call, by an :class:`AdaptiveRetryStrategy` with
    ``fail_fast=True``. Nothing was sent.

    Args:
        retry_after: Seconds until an attempt may be granted.

    Source: botocore's class of this name.

    >>> print(CapacityNotAvailableError(1.9))
    the rate limiter grants no attempt for 1.900 s
    """

    retry_after: float
    """Seconds from the refusal until an attempt may be granted."""

    def __init__(self, retry_after: float) -> None:
        super().__init__(retry_after)
        self.retry_after = retry_after

    def __str__(self) -> str:
        return f"the rate limiter grants no attempt for {self.retry_after:.3f} s"


@dataclass(kw_only=True, eq=False, repr=False)
class CallError(Exception):
    """A failed attempt, in the form that a Smithy strategy is given.

    The retrying client makes it of a response or of an exception, which is then its
    ``__cause__``. It is never raised to the caller. It has everything that
    :class:`ErrorRetryInfo` and :class:`HasFault` ask for. A subclass may be a dataclass
    with other defaults.

    Args:
        message: What happened.
        fault: Whose fault it is.
        is_retry_safe: True allows a retry, False forbids it.
        retry_after: Seconds that the server asks to wait.
        is_throttling_error: Whether the server complains of too many requests.
        is_timeout_error: Whether time ran out.
        status: The status of the response, if there was one.
        code: The error code that the response carries, without namespace and URL.

    Source: smithy-python's class of this name.

    >>> CallError("busy", fault="server", is_throttling_error=True).message
    'busy'
    """

    message: str = field(default="", kw_only=False)
    """The message of the error."""

    fault: Fault = None
    """The side that is at fault."""

    is_retry_safe: bool | None = None
    """True allows a retry, False forbids it; None if it is unknown."""

    retry_after: float | None = None
    """Seconds that the server asks to wait."""

    is_throttling_error: bool = False
    """Whether the server complains of too many requests."""

    is_timeout_error: bool = False
    """Whether time ran out."""

    status: int | None = None
    """The status of the response, or None after an exception."""

    code: str | None = None
    """The error code that the response carries."""

    def __post_init__(self) -> None:
        super().__init__(self.message)


@dataclass(kw_only=True, eq=False, repr=False)
class ModeledError(CallError):
    """An error that the model of a service describes, for a loop of your own.

    The same as a :class:`CallError`, but for ``fault``: it is the client's. So there is
    no retry unless ``is_retry_safe`` is True, or the error throttles or timed out.

    Source: smithy-python's class of this name.

    >>> from aioretry_smithy.smithy import RetryInfo
    >>> RetryInfo.of(ModeledError("no such order")).allows_retry
    False
    """

    fault: Fault = "client"


@dataclass(kw_only=True, eq=False, repr=False)
class ClientTimeoutError(CallError):
    """The client waited no longer for an answer, for a loop of your own.

    The same as a :class:`CallError` with other defaults: time ran out, for the client,
    and a retry is allowed.

    Source: smithy-python's class of this name.

    >>> from aioretry_smithy.smithy import RetryInfo
    >>> RetryInfo.of(ClientTimeoutError()).allows_retry
    True
    """

    fault: Fault = "client"
    is_retry_safe: bool | None = True
    is_timeout_error: bool = True


def refusals() -> tuple[type[Exception], ...]:
    """Return what a strategy may raise to say no, for an ``except`` clause."""
    theirs = _retry_error_of_smithy_python()
    return (RetryError,) if theirs is None else (RetryError, theirs)


def _retry_error_of_smithy_python() -> Any:
    # It is not a dependency; code that has raised its class has imported it.
    return getattr(sys.modules.get("smithy_core.exceptions"), "RetryError", None)


@cache
def _known_to_both(ours: Any, theirs: Any) -> type[RetryError]:
    def reduce(self: RetryError) -> tuple[object, ...]:
        return ours, self.args, vars(self)

    namespace = {"__module__": ours.__module__, "__reduce__": reduce}
    return type(ours.__name__, (ours, theirs), namespace)
