"""Decide which outcomes a circuit breaker counts as failures."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import aiohttp

from .._call.time_limits import CUT, until_deadline
from .._call.tries import THROTTLING, is_throttled, status_judged
from .._errors import UnprocessedRequestError, bad_argument
from .._failures.failure import failure_of, peel

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .._context.context import ClientRequestContext

# What most answers are to it; a dictionary is asked quicker than a range.
_VERDICTS = {status: status < 500 for status in range(200, 600)}

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
            nothing about the server and is not counted. Anything else is a
            :class:`ValueError`, which the caller gets.
        """

    def verdict_on(
        self, ctx: ClientRequestContext, cause: Exception | None, read: object
    ) -> Awaitable[bool | None] | bool:
        """Return the strategy's verdict without reading the body."""
        verdict = self.should_report_as_success(ctx, cause)
        return verdict if isinstance(verdict, bool) else checked_verdict(ctx, verdict)

    @property
    def _answers_always(self) -> bool:
        """Whether the strategy always decides, so later ones are never asked."""
        return True

    @property
    def _verdicts(self) -> Mapping[int | None, bool]:
        """Verdicts by status alone: True is a success, False a failure."""
        return {}

    @staticmethod
    def on_server_error_status(
        *, count_throttling: bool = True
    ) -> CircuitBreakerStrategy:
        """Count a status of 5xx, or an exception, as a failure; the default.

        An exception that was raised for an answer is judged by its status. It does not
        count what says nothing about the server: cancellation, an open
        circuit, a request refused on this side, one that timed out in the queue of the
        session's own connection pool, and the caller's own mistakes, such as a bad URL,
        bad arguments, a body that raises or a closed session.

        Args:
            count_throttling: Whether to count answers that say when to come back: a 429
                as a success, a 503 as a failure. False, as in the standard chain,
                counts no 429 or 503 whose ``Retry-After`` can be read, and no exception
                with ``is_throttling_error`` and a ``retry_after``.

        Returns:
            The one strategy of this kind.

        Raises:
            ValueError: *count_throttling* is no bool.

        >>> CircuitBreakerStrategy.on_server_error_status(count_throttling=False)
        CircuitBreakerStrategy.on_server_error_status(count_throttling=False)
        """
        if not isinstance(count_throttling, bool):
            raise bad_argument("count_throttling", count_throttling, "True or False")
        return _ON_SERVER_ERROR_STATUS if count_throttling else _BUT_NOT_THROTTLING


@dataclass(frozen=True, repr=False)
class _OnServerErrorStatus(CircuitBreakerStrategy):
    count_throttling: bool

    def should_report_as_success(
        self, ctx: ClientRequestContext, cause: Exception | None
    ) -> bool | None:
        call, record = ctx.call, ctx.record
        status = status_judged(record, cause)
        may_throttle = cause is not None or status in THROTTLING
        may_throttle &= not self.count_throttling
        if may_throttle and is_throttled(call, record, cause):
            return None
        if status is not None:
            return not 500 <= status <= 599
        if cause is not None:
            return False if _concerns_the_server(cause) else None
        # A function that has returned has no status.
        return None if record.outcome.ended is None else True

    @property
    def _verdicts(self) -> Mapping[int | None, bool]:
        unsure = () if self.count_throttling else THROTTLING
        return {each: _VERDICTS[each] for each in _VERDICTS.keys() - unsure}

    def __repr__(self) -> str:
        setting = "" if self.count_throttling else "count_throttling=False"
        return f"CircuitBreakerStrategy.on_server_error_status({setting})"


_ON_SERVER_ERROR_STATUS = _OnServerErrorStatus(count_throttling=True)
_BUT_NOT_THROTTLING = _OnServerErrorStatus(count_throttling=False)


async def checked_verdict(
    ctx: ClientRequestContext, verdict: Awaitable[bool | None] | object
) -> bool | None:
    """Return the verdict of a strategy, awaited if it can be; None at the deadline.

    Raises:
        ValueError: It is none.
    """
    if not isinstance(verdict, bool) and isinstance(verdict, Awaitable):
        verdict = await until_deadline(ctx, verdict)
        if verdict is CUT:
            return None
    if verdict is None or isinstance(verdict, bool):
        return verdict
    raise bad_argument("should_report_as_success", verdict, "True, False or None")


def _concerns_the_server(cause: BaseException) -> bool:
    failure, cause = failure_of(cause), peel(cause)
    if isinstance(cause, _OF_THE_SERVER):
        return not failure.raised_by_caller
    return not isinstance(cause, UnprocessedRequestError) and failure.is_of_server
