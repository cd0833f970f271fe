"""The errors of the Smithy strategies: what ends retries, and what they are shown."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from .._errors import UnprocessedRequestError

# Who derives a dataclass from these may ask for the types of its fields.
from .._failures.hints import Fault  # noqa: TC001


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
