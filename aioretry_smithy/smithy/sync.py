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
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, Unpack, runtime_checkable

from .._errors import bad_argument
from .._facade import publish
from . import interfaces
from .limiters import ClientRateLimiter
from .strategies import (
    AdaptiveMode,
    AdaptiveSettings,
    PerScope,
    SimpleMode,
    StandardMode,
    StandardStrategySettings,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from .interfaces import SimpleRetryToken, StandardRetryToken

_T = TypeVar("_T")

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
        """See :meth:`.smithy.RetryStrategy.acquire_initial_retry_token`."""

    def refresh_retry_token_for_retry(
        self, *, token_to_renew: Any, error: Exception
    ) -> interfaces.RetryToken:
        """See :meth:`.smithy.RetryStrategy.refresh_retry_token_for_retry`."""

    def record_success(self, *, token: Any) -> None:
        """See :meth:`.smithy.RetryStrategy.record_success`."""


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
        """See :meth:`.smithy.SimpleRetryStrategy.acquire_initial_retry_token`."""
        return self._acquire(token_scope)

    def refresh_retry_token_for_retry(
        self, *, token_to_renew: Any, error: Exception
    ) -> SimpleRetryToken:
        """See :meth:`.smithy.SimpleRetryStrategy.refresh_retry_token_for_retry`."""
        return self._refresh(token_to_renew, error)

    def record_success(self, *, token: Any) -> None:
        """See :meth:`.smithy.SimpleRetryStrategy.record_success`."""
        self._record_success(token)


class StandardRetryStrategy(StandardMode):
    """The standard mode: see :class:`.smithy.StandardRetryStrategy`.

    Args:
        sleep: A plain function that sleeps for the given seconds, for *long_polling*.
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
        **settings: Unpack[StandardStrategySettings],
    ) -> None:
        super().__init__(**settings)
        self._sleep = _checked(sleep)

    async def _pause(self, seconds: float) -> None:
        self._sleep(seconds)

    def acquire_initial_retry_token(
        self, *, token_scope: str | None = None
    ) -> StandardRetryToken:
        """See :meth:`.smithy.StandardRetryStrategy.acquire_initial_retry_token`."""
        return _result(self._wait_to_acquire(token_scope))

    def refresh_retry_token_for_retry(
        self, *, token_to_renew: Any, error: Exception
    ) -> StandardRetryToken:
        """See :meth:`.smithy.StandardRetryStrategy.refresh_retry_token_for_retry`."""
        return _result(self._wait_to_refresh(token_to_renew, error))

    def record_success(self, *, token: Any) -> None:
        """See :meth:`.smithy.StandardRetryStrategy.record_success`."""
        self._record_success(token)


class AdaptiveRetryStrategy(AdaptiveMode, StandardRetryStrategy):
    """The adaptive mode: see :class:`.smithy.AdaptiveRetryStrategy`.

    The thread sleeps inside of :meth:`acquire_initial_retry_token` and
    :meth:`refresh_retry_token_for_retry`, so never call these in a coroutine: it would
    hold up all others. Any number of threads may share one strategy, and a
    *rate_limiter* may be shared with coroutines, too.

    Args:
        sleep: A plain function that sleeps for the given seconds.
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
        # Made now, so that a bad clock is refused now.
        self.limiter_for()


def _result(rules: Coroutine[object, None, _T]) -> _T:
    """Run rules that wait in no event loop, since the thread sleeps instead."""
    while True:
        try:
            rules.send(None)
        except StopIteration as end:
            result: _T = end.value
            return result


def _checked(sleep: object) -> Callable[[float], object]:
    # A coroutine would not be awaited, and so nothing would ever be waited for.
    if not callable(sleep) or inspect.iscoroutinefunction(sleep):
        raise bad_argument("sleep", sleep, "a plain function of seconds")
    return sleep


publish()
