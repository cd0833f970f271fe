"""Who has a say in whether there may be one more retry, whatever one call wants."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from .._context import ClientRequestContext


class RetryLimiter(ABC):
    """Refuses retries for the sake of all calls, which the strategy of one cannot see.

    A retrying client tells it the outcome of each attempt, then asks for leave to
    retry, before the response is given away and before anything is waited for. Refused,
    the call ends with the outcome that it has and the stop reason ``limiter``.

    ===============  ==============================================================
    the attempt was  when
    ===============  ==============================================================
    neither          an open circuit refused it, with or without a fallback, or it
                     timed out in the queue of the session's own connection pool
    a failure        the strategy wants a retry, or the status is 500 or above, or
                     the failure is not permanent (:data:`RetrySafety.NO`)
    a success        the status is below 500 and no retry is wanted
    neither          anything else
    ===============  ==============================================================

    Each method may be plain or ``async``. An :meth:`acquire` that raises refuses; what
    the others raise is ignored; the log has a warning for each. One limiter may serve
    many clients. A subclass may have any ``__init__``. After Armeria's
    ``RetryLimiter``, which is asked only after the wait.

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
