"""Smithy's strategies with plain methods, for a loop of one's own without ``await``.

Same names, same arguments, same decisions as in :mod:`aioretry_smithy.smithy`: only the
waiting is done by the thread, which sleeps.

>>> from aioretry_smithy.smithy import sync
>>> strategy = sync.StandardRetryStrategy()
>>> token = strategy.acquire_initial_retry_token()
>>> token.retry_delay
0.0
>>> strategy.record_success(token=token)
"""

from __future__ import annotations

import inspect
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, Unpack, runtime_checkable

from .._errors import bad_argument
from . import interfaces
from .adaptive_mode import AdaptiveMode
from .rate_limiter import ClientRateLimiter
from .scopes import PerScope
from .simple_mode import SimpleMode
from .standard_mode import StandardMode
from .steps import slept

if TYPE_CHECKING:
    from collections.abc import Callable

    from .adaptive_mode import AdaptiveSettings
    from .standard_mode import StandardSettings
    from .tokens import SimpleRetryToken, StandardRetryToken

__all__ = [
    "AdaptiveRetryStrategy",
    "RetryStrategy",
    "SimpleRetryStrategy",
    "StandardRetryStrategy",
]


@runtime_checkable
class RetryStrategy(interfaces.RetryStrategy, Protocol):
    """A :class:`.smithy.RetryStrategy` whose methods are plain.

    Source: smithy-python's design document.
    """

    def acquire_initial_retry_token(
        self, *, token_scope: str | None = None
    ) -> interfaces.RetryToken:
        """Return the token of the first attempt.

        Args:
            token_scope: What calls have in common, where a strategy keeps several
                kinds of calls apart.

        Raises:
            RetryError: There is none. The call makes one attempt and no retry.
        """

    def refresh_retry_token_for_retry(
        self, *, token_to_renew: Any, error: Exception
    ) -> interfaces.RetryToken:
        """Return the token of the next attempt.

        Args:
            token_to_renew: The token of the attempt that failed.
            error: What it failed with.

        Raises:
            RetryError: There is to be no further attempt.
        """

    def record_success(self, *, token: Any) -> None:
        """Take back the token of an attempt that succeeded."""


class SimpleRetryStrategy(SimpleMode):
    """The simple mode: see :class:`.smithy.SimpleRetryStrategy`.

    Args:
        backoff_strategy: Computes the delays.
        max_attempts: Attempts of one call, the first one included, >= 1.

    Raises:
        ValueError: An argument is not as described.

    >>> from aioretry_smithy.smithy import sync
    >>> sync.SimpleRetryStrategy().acquire_initial_retry_token().attempt_count
    1
    """

    def acquire_initial_retry_token(
        self, *, token_scope: str | None = None
    ) -> SimpleRetryToken:
        """Return the token of the first attempt.

        Args:
            token_scope: Makes no difference here.
        """
        return self._issue(token_scope)

    def refresh_retry_token_for_retry(
        self, *, token_to_renew: Any, error: Exception
    ) -> SimpleRetryToken:
        """Return the token of the next attempt.

        Args:
            token_to_renew: The token of the attempt that failed.
            error: What it failed with.

        Raises:
            RetryError: The error allows no retry, or there were enough attempts.
            TypeError: *token_to_renew* is none of our tokens.
            ValueError: It was issued by another strategy, or used before.
        """
        return self._renew(token_to_renew, error)

    def record_success(self, *, token: Any) -> None:
        """Take back the token of an attempt that succeeded.

        Args:
            token: The token.

        Raises:
            TypeError: It is none of our tokens.
            ValueError: It was issued by another strategy, or used before.
        """
        self._succeed(token)


class StandardRetryStrategy(StandardMode):
    """The standard mode: see :class:`.smithy.StandardRetryStrategy`.

    Args:
        sleep: Sleeps so many seconds, for *long_polling*; a plain function.
        settings: The arguments of :class:`.smithy.StandardRetryStrategy`.

    Raises:
        ValueError: An argument is not as described.

    >>> from aioretry_smithy.smithy import sync
    >>> strategy = sync.StandardRetryStrategy(max_attempts=2)
    >>> token = strategy.refresh_retry_token_for_retry(
    ...     token_to_renew=strategy.acquire_initial_retry_token(),
    ...     error=CallError("503", fault="server"),
    ... )
    >>> token.attempt_count, token.quota_acquired
    (2, 14)
    """

    def __init__(
        self,
        *,
        sleep: Callable[[float], object] = time.sleep,
        **settings: Unpack[StandardSettings],
    ) -> None:
        super().__init__(**settings)
        self._sleep = _checked(sleep)

    def acquire_initial_retry_token(
        self, *, token_scope: str | None = None
    ) -> StandardRetryToken:
        """Return the token of the first attempt; there always is one.

        Args:
            token_scope: What the calls have in common that share a quota.
        """
        return self._issue(token_scope)

    def refresh_retry_token_for_retry(
        self, *, token_to_renew: Any, error: Exception
    ) -> StandardRetryToken:
        """Return the token of the next attempt.

        Args:
            token_to_renew: The token of the attempt that failed.
            error: What it failed with.

        Raises:
            RetryError: The error allows no retry, there were enough attempts, or the
                quota is exhausted. Its ``retry_after`` is None, except in the last
                case: then it is the delay that there would have been.
            TypeError: *token_to_renew* is none of our tokens.
            ValueError: It was issued by another strategy, or used before.
        """
        return slept(self._refreshing(token_to_renew, error), self._sleep)

    def record_success(self, *, token: Any) -> None:
        """Take back the token of an attempt that succeeded, and refund it.

        Args:
            token: The token.

        Raises:
            TypeError: It is none of our tokens.
            ValueError: It was issued by another strategy, or used before.
        """
        self._succeed(token)


class AdaptiveRetryStrategy(AdaptiveMode, StandardRetryStrategy):
    """The adaptive mode: see :class:`.smithy.AdaptiveRetryStrategy`.

    The thread sleeps inside of :meth:`acquire_initial_retry_token` and
    :meth:`refresh_retry_token_for_retry`, so never call these in a coroutine: it would
    hold up all others. Any number of threads may share one strategy, and a
    *rate_limiter* may be shared with coroutines, too.

    Args:
        sleep: Sleeps so many seconds; a plain function.
        clock: Seconds that pass while *sleep* sleeps, for the rate limiters that the
            strategy makes, see :class:`.smithy.ClientRateLimiter`. Not together with a
            *rate_limiter*, which has its own.
        settings: The arguments of :class:`.smithy.AdaptiveRetryStrategy`.

    Raises:
        ValueError: An argument is not as described.

    >>> from aioretry_smithy.smithy import sync
    >>> strategy = sync.AdaptiveRetryStrategy(sleep=print, clock=lambda: 0.0)
    >>> token = strategy.refresh_retry_token_for_retry(
    ...     token_to_renew=strategy.acquire_initial_retry_token(),
    ...     error=CallError("503", fault="server", retry_after=3.0),
    ... )
    3.0
    >>> token.retry_delay
    0.0
    """

    def __init__(
        self,
        *,
        sleep: Callable[[float], object] = time.sleep,
        clock: Callable[[], float] | None = None,
        **settings: Unpack[AdaptiveSettings],
    ) -> None:
        super().__init__(**settings)
        self._sleep = _checked(sleep)
        if clock is None:
            return
        if self._limiters.given is not None:
            raise bad_argument("clock", clock, "None with a rate_limiter")
        self._limiters = PerScope(partial(ClientRateLimiter, clock=clock))
        # Made now, so that a clock that is none is told now.
        self.limiter_for()

    def acquire_initial_retry_token(
        self, *, token_scope: str | None = None
    ) -> StandardRetryToken:
        """Return the token of the first attempt, when the rate limiter grants it.

        Args:
            token_scope: What the calls have in common that share a quota and a rate.

        Raises:
            CapacityNotAvailableError: It does not grant it now, and *fail_fast* is
                True.
        """
        return slept(self._acquiring(token_scope), self._sleep)


def _checked(sleep: Any) -> Callable[[float], object]:
    # A coroutine would not be awaited, and so nothing would ever be waited for.
    if not callable(sleep) or inspect.iscoroutinefunction(sleep):
        raise bad_argument("sleep", sleep, "a plain function of seconds")
    return sleep  # type: ignore[no-any-return]
