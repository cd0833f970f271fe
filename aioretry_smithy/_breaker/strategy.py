"""Decide which outcomes a circuit breaker counts as failures."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import aiohttp

from .._errors import UnprocessedRequestError
from .._failures.safety import (
    RetrySafety,
    peel,
    raised_by_caller,
    safety_by_kind,
    was_queued,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from .._call.context import ClientRequestContext

_SERVER_ERROR = 500
# Permanent, yet the server's doing.
_OF_THE_SERVER = (
    aiohttp.RedirectClientError,
    aiohttp.TooManyRedirects,
    aiohttp.ClientConnectorCertificateError,
    aiohttp.ServerFingerprintMismatch,
)


class CircuitBreakerStrategy(ABC):
    """Judges the outcome of a request for a circuit breaker.

    A subclass may have any ``__init__``; one object serves any number of requests.

    >>> class SlowIsBroken(CircuitBreakerStrategy):
    ...     def should_report_as_success(self, ctx, cause):
    ...         return cause is None and ctx.log.duration < 2.0
    """

    @abstractmethod
    def should_report_as_success(
        self, ctx: ClientRequestContext, cause: Exception | None
    ) -> bool | Awaitable[bool | None] | None:
        """Say whether the circuit breaker is to count a success; plain or async.

        The response goes to the caller afterwards, unread; what is known of it is in
        ``ctx.log``: ``response_status``, ``response_headers``, ``duration``.

        Args:
            ctx: The call or the attempt.
            cause: What it failed with, or None when there is a response; never a
                cancellation, which does not count.

        Returns:
            True for a success, False for a failure, None where the outcome says
            nothing about the server and is not counted.
        """

    @property
    def _answers_always(self) -> bool:
        """Whether a strategy behind this one is never asked."""
        return True

    @staticmethod
    def on_server_error_status() -> CircuitBreakerStrategy:
        """Count a status of 500 or above, or an exception, as a failure; the default.

        It does not count what says nothing about the server: cancellation, an open
        circuit, a request refused on this side, one that timed out in the queue of the
        session's own connection pool, and the caller's own mistakes, such as a bad URL,
        bad arguments, a body that raises or a closed session.

        Returns:
            The one strategy of this kind.

        >>> CircuitBreakerStrategy.on_server_error_status()
        CircuitBreakerStrategy.on_server_error_status()
        """
        return _ON_SERVER_ERROR_STATUS


@dataclass(frozen=True, repr=False)
class _OnServerErrorStatus(CircuitBreakerStrategy):
    def should_report_as_success(
        self, ctx: ClientRequestContext, cause: Exception | None
    ) -> bool | None:
        if cause is not None:
            return False if _concerns_the_server(cause) else None
        status = ctx.log.response_status
        if status is None:
            # A function that has returned has no status.
            return None if ctx.log.duration is None else True
        return status < _SERVER_ERROR

    def __repr__(self) -> str:
        return "CircuitBreakerStrategy.on_server_error_status()"


_ON_SERVER_ERROR_STATUS = _OnServerErrorStatus()


def _concerns_the_server(cause: BaseException) -> bool:
    cause = peel(cause)
    if isinstance(cause, _OF_THE_SERVER):
        return not raised_by_caller(cause)
    if isinstance(cause, UnprocessedRequestError) or was_queued(cause):
        return False
    return safety_by_kind(cause) is not RetrySafety.NO
