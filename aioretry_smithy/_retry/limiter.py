"""Limit retries across calls."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from .._errors import bad_argument, is_finite
from ..smithy.shared import Shared

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from .._call.context import ClientRequestContext
    from .._call.short_lane import LaneStep

NEGLIGIBLE = 1e-9
"""Tokens that may be missing or too many: floats that are added up are not exact."""


class RetryLimiter(ABC):
    """Limits retries across calls, which the strategy of one call cannot see.

    A retrying client tells it the outcome of each attempt, then asks for leave to
    retry, before the response is given away and before anything is waited for. Refused,
    the call ends with the outcome that it has and the stop reason ``limiter``.

    ===============  ==============================================================
    the attempt was  when
    ===============  ==============================================================
    neither          an open circuit refused it, with or without a fallback, or it
                     timed out in the queue of the session's own connection pool
    a failure        the strategy wants a retry, or the status is 500 or above, or
                     the failure is not permanent (:data:`RetrySafety.NO`, as if it
                     had no ``is_retry_safe``)
    a success        the status is below 500 and no retry is wanted
    neither          anything else
    ===============  ==============================================================

    Each method may be plain or ``async``. An :meth:`acquire` that raises refuses; what
    the others raise is ignored; the log has a warning for each. One limiter may serve
    many clients. A limiter that stands in front of another one passes all five methods
    on. A subclass may have any ``__init__``. After Armeria's ``RetryLimiter``, which is
    asked only after the wait.

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
        """Return a limiter that allows so many retries at once.

        A retry holds its place from the moment it is granted, through the wait before
        it, until it is over: answered, failed, cancelled or given up. Where no place is
        free the call ends at once with the outcome that it has; it does not queue.
        After Armeria's ``RetryLimiter.concurrencyLimiting``, which takes a place after
        the wait and keeps it to the end of the body.

        The limiter may serve many clients, tasks and sessions of one event loop, but
        not threads. Copying it gives the same one.

        Args:
            max_retries: Retries of all calls at a time, an int >= 1.

        Raises:
            ValueError: It is not.

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
        ones too, takes a token; each that succeeds brings *token_ratio*. Retries are
        allowed while there are more than *threshold* tokens. With the ratio of 1 they
        stop when more than half of the attempts fail; with 0.1, a usual one for gRPC,
        when more than one in eleven does. What counts as a success or a failure stands
        above. After Armeria's ``RetryLimiter.tokenBased`` and gRPC's retry throttling.

        The limiter may serve many clients, tasks and sessions of one event loop, but
        not threads. Copying it gives the same one.

        Args:
            max_tokens: Tokens at first and at most, finite and > 0.
            threshold: Tokens of which there must be more, >= 0 and < *max_tokens*. gRPC
                takes half of *max_tokens*.
            token_ratio: Tokens that a success brings, finite and > 0. Ten times 0.1
                make up for a failure: a thousand millionth of a token is nothing.

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
        """Give leave to retry, or refuse it.

        Asked last of all, so every limit of the call itself has room for the retry.
        Time that it takes counts against the deadline of the call.

        Args:
            ctx: The attempt that failed; ``ctx.request`` is what it sent, ``ctx.log``
                has the status and the headers of its response.
            cause: What it failed with, or None when there is a response.

        Returns:
            True for the retry, False to end the call. Anything else is an error.
        """

    def release(self, ctx: ClientRequestContext) -> Awaitable[None] | None:
        """Take back the leave that was given, since there will be no retry after all.

        The wait for it was cancelled, or time ran out. Better do not wait in here: a
        call that is cancelled meanwhile does not wait for the rest.

        Args:
            ctx: The attempt that :meth:`acquire` was called with.
        """
        return None

    def on_retry_end(self, ctx: ClientRequestContext) -> Awaitable[None] | None:
        """Hear that a retry which had leave is over, in whatever way.

        After each leave that was given comes either this or :meth:`release`, once: this
        where the retry was begun, also where it was cancelled, timed out or an error of
        the caller's own code ended it. The outcome, where there is one, was told before
        by :meth:`on_success` or :meth:`on_failure`. A retry is over when the strategy
        has judged it; the body of a stream may still be on its way then.

        Args:
            ctx: The attempt that :meth:`acquire` was called with, not the retry.
        """
        return None

    def on_success(self, ctx: ClientRequestContext) -> Awaitable[None] | None:
        """Hear that an attempt succeeded.

        Args:
            ctx: The attempt.
        """
        return None

    def on_failure(
        self, ctx: ClientRequestContext, cause: Exception | None
    ) -> Awaitable[None] | None:
        """Hear that an attempt failed; :meth:`acquire` comes after it, if at all.

        Args:
            ctx: The attempt.
            cause: What it failed with, or None when there is a response.
        """
        return None

    def _lane_step(self) -> LaneStep | None:
        """Return what notes a success without a context, if anything does."""
        return None


class _ConcurrencyLimiter(Shared, RetryLimiter):
    def __init__(self, max_retries: int) -> None:
        if type(max_retries) is not int or max_retries < 1:
            raise bad_argument("max_retries", max_retries, "an int >= 1")
        self._max_retries = max_retries
        self._retries = 0

    def acquire(self, ctx: ClientRequestContext, cause: Exception | None) -> bool:
        if self._retries >= self._max_retries:
            return False
        self._retries += 1
        return True

    def release(self, ctx: ClientRequestContext) -> None:
        self._retries -= 1

    def on_retry_end(self, ctx: ClientRequestContext) -> None:
        self._retries -= 1

    def __repr__(self) -> str:
        return f"RetryLimiter.concurrency({self._max_retries})"


class _TokenBasedLimiter(Shared, RetryLimiter):
    def __init__(self, max_tokens: float, threshold: float, token_ratio: float) -> None:
        if not is_finite(max_tokens) or max_tokens <= 0:
            raise bad_argument("max_tokens", max_tokens, "finite and > 0")
        if not is_finite(threshold) or not 0 <= threshold < max_tokens:
            expected = f">= 0 and < max_tokens, {max_tokens!r}"
            raise bad_argument("threshold", threshold, expected)
        if not is_finite(token_ratio) or token_ratio <= 0:
            raise bad_argument("token_ratio", token_ratio, "finite and > 0")
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

    def __repr__(self) -> str:
        return f"RetryLimiter.token_based({self._settings})"
