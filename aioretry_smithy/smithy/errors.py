"""The errors of the Smithy strategies: what ends retries, and what they are shown."""

from __future__ import annotations

import sys
from functools import cache
from typing import TYPE_CHECKING, Any

from .._errors import UnprocessedRequestError

if TYPE_CHECKING:
    from .._retry_info import Fault


class RetryError(Exception):
    """There is no token for another attempt.

    Where smithy-python is in use too, instances are also of its class of this name, so
    that its loops understand the strategies of this library.

    Args:
        message: Why.
        retry_after: Seconds after which there may be one again, or None.

    >>> RetryError("the quota is exhausted", retry_after=1.5).retry_after
    1.5
    """

    retry_after: float | None
    """Seconds after which there may be a token again, or None."""

    def __new__(cls, *args: Any, **options: Any) -> RetryError:
        """Make an instance that smithy-python knows, too, where it is loaded."""
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
    """The rate limiter grants no attempt now, and nobody was to wait; nothing was sent.

    Raised for the first attempt of a call, by an :class:`AdaptiveRetryStrategy` with
    ``fail_fast=True``.

    Args:
        retry_after: Seconds until it may be worth while to ask again.

    Source: botocore's class of this name.

    >>> print(CapacityNotAvailableError(1.9))
    the rate limiter grants no attempt for 1.900 s
    """

    retry_after: float
    """Seconds from the refusal until it may be worth while to ask again."""

    def __init__(self, retry_after: float) -> None:
        super().__init__(retry_after)
        self.retry_after = retry_after

    def __str__(self) -> str:
        return f"the rate limiter grants no attempt for {self.retry_after:.3f} s"


class CallError(Exception):
    """An attempt that failed, as a strategy of Smithy's kind is shown it.

    The retrying client makes it of a response or of an exception, which is then its
    ``__cause__``. It is never raised to the caller. It has everything that
    :class:`ErrorRetryInfo` and :class:`HasFault` ask for.

    Args:
        message: What happened.
        fault: Whose fault it is.
        is_retry_safe: True allows a retry, False forbids it.
        retry_after: Seconds that the server asks to be left alone.
        is_throttling_error: Whether the server complains of too many requests.
        is_timeout_error: Whether time ran out.
        status: The status of the response, if there was one.
        code: The error code that the response carries, without namespace and URL.

    Source: smithy-python's class of this name.
    """

    fault: Fault
    """Whose fault it is."""

    is_retry_safe: bool | None
    """True allows a retry, False forbids it; None where nobody can tell."""

    retry_after: float | None
    """Seconds that the server asks to be left alone."""

    is_throttling_error: bool
    """Whether the server complains of too many requests."""

    is_timeout_error: bool
    """Whether time ran out."""

    status: int | None
    """The status of the response, or None after an exception."""

    code: str | None
    """The error code that the response carries."""

    def __init__(
        self,
        message: str = "",
        *,
        fault: Fault = None,
        is_retry_safe: bool | None = None,
        retry_after: float | None = None,
        is_throttling_error: bool = False,
        is_timeout_error: bool = False,
        status: int | None = None,
        code: str | None = None,
    ) -> None:
        super().__init__(message)
        self.fault = fault
        self.is_retry_safe = is_retry_safe
        self.retry_after = retry_after
        self.is_throttling_error = is_throttling_error
        self.is_timeout_error = is_timeout_error
        self.status = status
        self.code = code


def refusals() -> tuple[type[Exception], ...]:
    """Return what a strategy may raise to say no, for an ``except`` clause."""
    theirs = _retry_error_of_smithy_python()
    return (RetryError,) if theirs is None else (RetryError, theirs)


def _retry_error_of_smithy_python() -> Any:
    # It is not a dependency; whoever has raised its class has imported it.
    return getattr(sys.modules.get("smithy_core.exceptions"), "RetryError", None)


@cache
def _known_to_both(ours: Any, theirs: Any) -> type[RetryError]:
    def reduce(self: RetryError) -> tuple[Any, ...]:
        return ours, self.args, vars(self)

    namespace = {"__module__": ours.__module__, "__reduce__": reduce}
    return type(ours.__name__, (ours, theirs), namespace)
