"""Define an outcome to classify, and the verdicts of classifiers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

import aiohttp
from multidict import CIMultiDict, CIMultiDictProxy

from .._errors import bad_argument, is_finite
from .._failures.hints import retry_after
from .._failures.safety import peel

if TYPE_CHECKING:
    from .._context.context import ClientRequestContext

# Stands for a number of too many digits, which is read as infinity.
_LONGEST_RETRY_AFTER = 1e10


class ErrorKind(StrEnum):
    """The kind of a failure that may be retried."""

    TRANSIENT = "transient"
    """The failure will pass."""

    TIMEOUT = "timeout"
    """Time ran out, here or at the server."""

    THROTTLING = "throttling"
    """The server complains of too many requests."""


@dataclass(frozen=True, slots=True, repr=False)
class RetryAction:
    """The verdict of a classifier: :meth:`retry` or :meth:`forbid`.

    Args:
        kind: The kind of the failure; None forbids a retry.
        retry_after: Seconds that the server asks to wait, finite and >= 0, or
            None.

    Raises:
        ValueError: An argument is out of range.
    """

    kind: ErrorKind | None
    retry_after: float | None = None

    def __post_init__(self) -> None:
        if self.kind is not None and not isinstance(self.kind, ErrorKind):
            raise bad_argument("kind", self.kind, "an ErrorKind")
        wait = self.retry_after
        if wait is not None and not (is_finite(wait) and wait >= 0):
            raise bad_argument("retry_after", wait, "seconds, finite and >= 0, or None")

    @staticmethod
    def retry(
        kind: ErrorKind = ErrorKind.TRANSIENT, *, retry_after: float | None = None
    ) -> RetryAction:
        """Allow a retry.

        Args:
            kind: The kind of the failure: strategies wait longer after
                throttling, and some pay more after a timeout.
            retry_after: Seconds that the server asks to wait. None keeps the
                hint of an earlier classifier, or else of the response headers.

        Raises:
            ValueError: An argument is out of range.

        >>> RetryAction.retry(ErrorKind.THROTTLING, retry_after=1.5)
        RetryAction.retry(ErrorKind.THROTTLING, retry_after=1.5)
        """
        if kind is None:
            raise bad_argument("kind", kind, "an ErrorKind")
        return RetryAction(kind, retry_after)

    @staticmethod
    def forbid() -> RetryAction:
        """Forbid a retry; no further classifier is asked.

        >>> RetryAction.forbid()
        RetryAction.forbid()
        """
        return _FORBID

    def __repr__(self) -> str:
        if self.kind is None:
            return "RetryAction.forbid()"
        wait = "" if self.retry_after is None else f", retry_after={self.retry_after!r}"
        return f"RetryAction.retry(ErrorKind.{self.kind.name}{wait})"


_FORBID = RetryAction(None)


@dataclass(frozen=True, slots=True)
class Failure:
    """One outcome, for a classifier to judge."""

    ctx: ClientRequestContext
    """The attempt; ``ctx.request`` is its request and ``ctx.log`` has its outcome."""

    cause: Exception | None = None
    """The exception of a failed attempt, or None when there is a response."""

    code: str | None = None
    """The error code of the response, without namespace and URL."""

    @property
    def status(self) -> int | None:
        """The status of the response, or None without one.

        Also the status of a response that a decorator turned into an error by
        ``raise_for_status()``, or of a proxy that refused.
        """
        error = raised_for_status(self.cause)
        return self.ctx.log.response_status if error is None else error.status

    @property
    def headers(self) -> CIMultiDictProxy[str]:
        """The headers that came with the :attr:`status`; empty without one."""
        error = raised_for_status(self.cause)
        headers = self.ctx.log.response_headers if error is None else error.headers
        return CIMultiDictProxy(CIMultiDict(headers or ()))

    @property
    def retry_after(self) -> float | None:
        """Seconds that the headers ask to wait, or None."""
        log = self.ctx.log
        arrived = log.request_started_at.timestamp() + (log.duration or 0.0)
        seconds = retry_after(self.headers, now=arrived)
        return None if seconds is None else min(seconds, _LONGEST_RETRY_AFTER)


def raised_for_status(cause: Exception | None) -> aiohttp.ClientResponseError | None:
    """Return the error in *cause* if it has the status and headers of a response."""
    error = None if cause is None else peel(cause)
    if not isinstance(error, aiohttp.ClientResponseError) or error.status < 400:
        return None
    # When aiohttp cannot parse an answer, it makes up a status, and has a cause.
    return error if error.__cause__ is None else None


Classifier: TypeAlias = Callable[[Failure, RetryAction | None], RetryAction | None]
"""Judge an outcome, given the verdict of earlier classifiers; None abstains."""
