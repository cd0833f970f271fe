"""Limit retries across calls: limiters, and how a retrying client asks them."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import closing, suppress
from typing import TYPE_CHECKING

from .. import _checks as check
from .._call.deadline_cut import CUT, until_deadline
from .._errors import bad_argument, is_finite, shown
from .._failures.failure import SERVER_ERRORS, failure_of
from .._values import Shared

if TYPE_CHECKING:
    from .._call.record import Record
    from .._context.context import ClientRequestContext


_logger = logging.getLogger("aioretry_smithy")

_SERVER_ERROR = 500

_IGNORED = "%r raised, which is ignored"


async def acquired(
    limiter: RetryLimiter, ctx: ClientRequestContext, cause: Exception | None
) -> bool | None:
    """Ask a limiter for a permit to retry; an error counts as a refusal.

    Returns None where the deadline of the call has cut it.
    """
    try:
        answer: object = limiter.acquire(ctx, cause)
        if not isinstance(answer, bool) and isinstance(answer, Awaitable):
            answer = await until_deadline(ctx, answer)
            if answer is CUT:
                return None
    except Exception:
        _logger.warning("%r raised, so there is no retry", limiter, exc_info=True)
        return False
    if isinstance(answer, bool):
        return answer
    _logger.warning("%r returned %s, so there is no retry", limiter, shown(answer))
    return False


def report(
    limiter: RetryLimiter,
    ctx: ClientRequestContext,
    cause: Exception | None,
    *,
    wanted: bool,
) -> Awaitable[None] | None:
    """Report the outcome of an attempt to a limiter, if relevant.

    Returns what is to be awaited, if anything is.
    """
    record = ctx.record
    failed = _is_failure(record, cause, wanted)
    # A fallback's answer says as little of the server as the refusal it stands for.
    if failed is None or record.was_refused:
        return None
    try:
        answer = limiter.on_failure(ctx, cause) if failed else limiter.on_success(ctx)
    except Exception:
        _logger.warning(_IGNORED, limiter, exc_info=True)
        return None
    # Most answers are none.
    if answer is None or not isinstance(answer, Awaitable):
        return None
    return _in_time(limiter, ctx, answer)


async def notify(
    limiter: RetryLimiter,
    hook: Callable[..., Awaitable[None] | None],
    ctx: ClientRequestContext,
) -> None:
    """Report the end of a permit to a limiter, in time; an error is logged."""
    try:
        answer = hook(ctx)
    except Exception:
        _logger.warning(_IGNORED, limiter, exc_info=True)
        return
    if isinstance(answer, Awaitable):
        await _in_time(limiter, ctx, answer)


async def _in_time(
    limiter: RetryLimiter, ctx: ClientRequestContext, answer: Awaitable[None]
) -> None:
    try:
        await until_deadline(ctx, answer)
    except Exception:
        _logger.warning(_IGNORED, limiter, exc_info=True)


def until_it_waits(notifying: Coroutine[object, None, None]) -> None:
    """Notify a limiter without an event loop: the rest after its first wait is lost."""
    with closing(notifying), suppress(StopIteration):
        notifying.send(None)


def _is_failure(record: Record, cause: Exception | None, wanted: bool) -> bool | None:
    status = record.outcome.status
    if cause is not None:
        failure = failure_of(cause)
        # A request that an open circuit refuses was not sent: no word of the server.
        # Nor is a wait for a place in the session's own pool, or a failure of a hook.
        if failure.kind.is_refusal or failure.queue is not None or failure.of_no_server:
            return None
        status = failure.status_of_server
        if status is None and not wanted:
            return True if failure.is_of_server else None
    if wanted:
        return True
    if status is None:
        # A function that has returned has no status.
        return None if record.outcome.ended is None else False
    if status in SERVER_ERRORS:
        return True
    # What is above 5xx means nothing in HTTP.
    return False if status < _SERVER_ERROR else None


NEGLIGIBLE = 1e-9
"""Tokens that may be missing or too many: floats that are added up are not exact."""


class RetryLimiter(ABC):
    """Limits retries across calls, which the strategy of one call cannot see.

    A retrying client tells it the outcome of each attempt, then asks for a permit to
    retry, before it releases the response and before it waits. Without a permit the
    call ends with its last outcome and the stop reason ``limiter``.

    ===============  ==============================================================
    the attempt was  when
    ===============  ==============================================================
    neither          an open circuit, a concurrency limit or a rate limit refused
                     it, it timed out in the queue of the session's own
                     connection pool, or a hook or a middleware of ``aiohttp``
                     has failed by itself
    a failure        the strategy wants a retry, or the status is 5xx, or
                     the failure is not permanent (not :data:`RetrySafety.NO`;
                     ``is_retry_safe`` does not matter)
    a success        the status is below 500 and no retry is wanted
    neither          anything else
    ===============  ==============================================================

    An exception that was raised for an answer is judged by its status.

    Each method may be plain or ``async``. An :meth:`acquire` that raises refuses;
    exceptions of the others are ignored; each is logged as a warning. One limiter may
    serve many clients. If yours wraps another one, let it pass on all five methods. A
    subclass may have any ``__init__``. After Armeria's ``RetryLimiter``, which is asked
    only after the wait.

    Ready-made: :meth:`concurrency`, :meth:`token_based` and :class:`RetryBudget`.

    >>> class AtMost(RetryLimiter):
    ...     def __init__(self, retries):
    ...         self.left = retries
    ...
    ...     def acquire(self, ctx, cause):
    ...         if self.left == 0:
    ...             return False
    ...         self.left -= 1
    ...         return True
    ...
    ...     def release(self, ctx):
    ...         self.left += 1
    """

    @staticmethod
    def concurrency(max_retries: int) -> RetryLimiter:
        """Return a limiter that allows a number of retries at a time.

        A retry holds its place from the wait before it to its end: answered, failed,
        cancelled or given up. If no place is free, the call ends at once with its last
        outcome; it does not queue. After Armeria's
        ``RetryLimiter.concurrencyLimiting``, which takes a place after the wait and
        keeps it to the end of the body.

        The limiter may serve many clients, tasks and sessions of one event loop, but
        not threads. Copying it gives the same one.

        Args:
            max_retries: Retries of all calls at a time, an int >= 1.

        Raises:
            ValueError: *max_retries* is not as described.

        >>> RetryLimiter.concurrency(20)
        RetryLimiter.concurrency(20)
        """
        return _ConcurrencyLimiter(max_retries)

    @staticmethod
    def token_based(
        max_tokens: float, threshold: float, *, token_ratio: float = 1.0
    ) -> RetryLimiter:
        """Return a limiter that allows retries while enough attempts succeed.

        It holds *max_tokens* at first, and never more. Each attempt that fails, first
        ones too, takes a token; each that succeeds adds *token_ratio*. Retries are
        allowed while there are more than *threshold* tokens. With the ratio of 1 they
        stop when more than half of the attempts fail; with 0.1, a usual one for gRPC,
        when more than one in eleven does. :class:`RetryLimiter` says what counts as a
        success or a failure. After Armeria's ``RetryLimiter.tokenBased`` and gRPC's
        retry throttling.

        The limiter may serve many clients, tasks and sessions of one event loop, but
        not threads. Copying it gives the same one.

        Args:
            max_tokens: Tokens at first and at most, finite and > 0.
            threshold: A retry needs more tokens than this, >= 0 and < *max_tokens*.
                gRPC takes half of *max_tokens*.
            token_ratio: Tokens that a success adds, finite and > 0. Ten times 0.1 make
                up for a failure: errors of rounding, up to 1e-9 tokens, are ignored.

        Raises:
            ValueError: An argument is not as described.

        Source: gRPC's proposal A6, "Throttling Retry Attempts and Hedged RPCs".

        >>> RetryLimiter.token_based(10, 5, token_ratio=0.1)
        RetryLimiter.token_based(10, 5, token_ratio=0.1)
        """
        return _TokenBasedLimiter(max_tokens, threshold, token_ratio)

    @abstractmethod
    def acquire(
        self, ctx: ClientRequestContext, cause: Exception | None
    ) -> bool | Awaitable[bool]:
        """Give a permit to retry, or refuse it.

        Called last: all limits of the call itself allow the retry. The time that it
        takes counts against the deadline of the call.

        Args:
            ctx: The attempt that failed; ``ctx.request`` is its request, ``ctx.log``
                has the status and the headers of its response.
            cause: The exception of the attempt, or None when there is a response.

        Returns:
            True for the retry, False to end the call. Anything else is an error.
        """

    def release(self, ctx: ClientRequestContext) -> Awaitable[None] | None:
        """Take back the permit of a retry that is not made after all.

        The wait for the retry was cancelled, or time ran out. Avoid waiting in here: a
        call that is cancelled meanwhile does not wait for the rest.

        Args:
            ctx: The attempt that :meth:`acquire` was called with.
        """
        return None

    def on_retry_end(self, ctx: ClientRequestContext) -> Awaitable[None] | None:
        """React to the end of a retry that had a permit.

        Each permit is followed by exactly one call of this or of :meth:`release`. It is
        this one if the retry was begun, even if it was cancelled, timed out or ended by
        an error of the caller's own code. :meth:`on_success` or :meth:`on_failure` was
        called before, if there was an outcome. A retry ends when the strategy has
        judged it; the body of a stream may still be on its way then.

        Args:
            ctx: The attempt that :meth:`acquire` was called with, not the retry.
        """
        return None

    def _refusal(self, ctx: ClientRequestContext, cause: Exception | None) -> str:
        """Describe the refusal of a retry: the name of the limiter, and its level."""
        return type(self).__name__

    def on_success(self, ctx: ClientRequestContext) -> Awaitable[None] | None:
        """React to an attempt that succeeded.

        Args:
            ctx: The attempt.
        """
        return None

    def on_failure(
        self, ctx: ClientRequestContext, cause: Exception | None
    ) -> Awaitable[None] | None:
        """React to an attempt that failed; :meth:`acquire` may be called after it.

        Args:
            ctx: The attempt.
            cause: The exception of the attempt, or None when there is a response.
        """
        return None


class _ConcurrencyLimiter(Shared, RetryLimiter):
    def __init__(self, max_retries: int) -> None:
        check.integer("max_retries", max_retries, 1)
        self._max_retries = max_retries
        self._retries = 0

    def acquire(self, ctx: ClientRequestContext, cause: Exception | None) -> bool:
        if self._retries >= self._max_retries:
            return False
        self._retries += 1
        return True

    def release(self, ctx: ClientRequestContext) -> None:
        self._retries -= 1

    on_retry_end = release

    def _refusal(self, ctx: ClientRequestContext, cause: Exception | None) -> str:
        return f"{self!r}, {self._retries} under way"

    def __repr__(self) -> str:
        return f"RetryLimiter.concurrency({self._max_retries})"


class _TokenBasedLimiter(Shared, RetryLimiter):
    def __init__(self, max_tokens: float, threshold: float, token_ratio: float) -> None:
        check.positive("max_tokens", max_tokens)
        if not is_finite(threshold) or not 0 <= threshold < max_tokens:
            expected = f">= 0 and < max_tokens, {max_tokens!r}"
            raise bad_argument("threshold", threshold, expected)
        check.positive("token_ratio", token_ratio)
        self._settings = f"{max_tokens!r}, {threshold!r}, token_ratio={token_ratio!r}"
        self._tokens = self._max_tokens = max_tokens
        self._threshold = threshold
        self._reward = token_ratio

    def acquire(self, ctx: ClientRequestContext, cause: Exception | None) -> bool:
        return self._tokens > self._threshold + NEGLIGIBLE

    def on_success(self, ctx: ClientRequestContext) -> None:
        self._tokens = min(self._tokens + self._reward, self._max_tokens)

    def on_failure(self, ctx: ClientRequestContext, cause: Exception | None) -> None:
        self._tokens = max(self._tokens - 1, 0.0)

    def _refusal(self, ctx: ClientRequestContext, cause: Exception | None) -> str:
        left = f"{self._tokens:.4g} tokens left"
        return f"RetryLimiter.token_based, {left}, a retry needs > {self._threshold:g}"

    def __repr__(self) -> str:
        return f"RetryLimiter.token_based({self._settings})"
