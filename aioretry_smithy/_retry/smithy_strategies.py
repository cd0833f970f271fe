"""Get tokens and backoffs from Smithy strategies, this library's and others."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from .. import _checks as check
from .._call.deadline_cut import until_deadline
from .._errors import bad_argument
from .._policies.backoff import Backoff
from ..smithy import sync
from ..smithy.interfaces import METHODS, BackoffExhaustedError, check_backoff_strategy
from ..smithy.strategies import AdaptiveMode, StandardMode, StandardRetryStrategy

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._context.context import ClientRequestContext
    from .._request.request import HttpRequest
    from ..smithy.interfaces import CallError, RetryBackoffStrategy
    from ..smithy.limiters import ClientRateLimiter


Token: TypeAlias = Any
"""A token of whichever class its strategy makes."""

TokenScope: TypeAlias = (
    "str | Callable[[ClientRequestContext, HttpRequest], str | None] | None"
)
"""A name for all calls, a function that names the scope of each, or None."""


class StrategyTokens:
    """Asks any strategy of Smithy's kind, by its three methods, plain or ``async``."""

    long_polling = False
    """Whether a call waits before it fails for an empty quota."""

    waits_for_rate = False
    """Whether attempts wait for the rate limiter, if there is one."""

    def __init__(self, strategy: Any, ctx: ClientRequestContext) -> None:
        self._strategy = strategy
        self._ctx = ctx

    async def acquire(self, scope: str | None) -> Token:
        """Return the initial token of a call; :data:`.CUT` at its deadline."""
        acquire = self._strategy.acquire_initial_retry_token
        return await self._settled(acquire(token_scope=scope))

    async def refresh(self, token: Token, error: CallError) -> Token:
        """Return the token of the next attempt; :data:`.CUT` at the deadline."""
        refresh = self._strategy.refresh_retry_token_for_retry
        return await self._settled(refresh(token_to_renew=token, error=error))

    async def record_success(self, token: Token) -> None:
        """Report a success to the strategy."""
        await self._settled(self._strategy.record_success(token=token))

    async def _settled(self, answer: object) -> Token:
        if inspect.isawaitable(answer):
            return await until_deadline(self._ctx, answer)
        return answer

    def release(self, token: Token) -> None:
        """Refund the cost of a retry that is not made after all."""

    def rate_limiter(self, scope: str | None) -> ClientRateLimiter | None:
        """Return the rate limiter of a scope, or None."""
        return None


class OwnStrategyTokens(StrategyTokens):
    """Gets tokens from a strategy of this library without waiting public methods.

    The methods would wait. Here the client waits itself: its waits are bounded by the
    deadline and show in the log.
    """

    _strategy: StandardMode

    def __init__(self, strategy: StandardMode, ctx: ClientRequestContext) -> None:
        super().__init__(strategy, ctx)
        self.long_polling = strategy.long_polling
        self.waits_for_rate = isinstance(strategy, AdaptiveMode) and strategy._may_wait

    async def acquire(self, scope: str | None) -> Token:
        return self._strategy._acquire(scope)

    async def refresh(self, token: Token, error: CallError) -> Token:
        return self._strategy._refresh(token, error)

    async def record_success(self, token: Token) -> None:
        self._strategy._record_success(token)

    def release(self, token: Token) -> None:
        self._strategy._release(token)

    def rate_limiter(self, scope: str | None) -> ClientRateLimiter | None:
        strategy = self._strategy
        if isinstance(strategy, AdaptiveMode):
            return strategy.limiter_for(scope)
        return None


def tokens_of(strategy: object, ctx: ClientRequestContext) -> StrategyTokens:
    """Return the tokens of a strategy: by its rules, or by overridden methods."""
    if isinstance(strategy, StandardMode) and _has_our_methods(strategy):
        return OwnStrategyTokens(strategy, ctx)
    return StrategyTokens(strategy, ctx)


def holds_up_the_loop(strategy: object) -> bool:
    """Say whether the methods of a strategy would block the event loop."""
    return (
        isinstance(strategy, sync.StandardRetryStrategy)
        and strategy._may_wait
        and not _has_our_methods(strategy)
    )


def _has_our_methods(strategy: object) -> bool:
    # An overridden method has to be called.
    kind: type = type(strategy)
    return _inherits_methods(kind) and vars(strategy).keys().isdisjoint(METHODS)


@cache
def _inherits_methods(kind: type) -> bool:
    return any(
        all(getattr(kind, name, None) is getattr(ours, name) for name in METHODS)
        for ours in (StandardRetryStrategy, sync.StandardRetryStrategy)
    )


def delay_of(token: Token, origin: str) -> float:
    """Return the delay of a token that the method *origin* has returned, checked."""
    if not hasattr(token, "retry_delay"):
        raise bad_argument(origin, token, "a token")
    delay: float | None = token.retry_delay
    check.not_negative("retry_delay", delay, or_none=True)
    return 0.0 if delay is None else delay


def names_scope(value: object) -> bool:
    """Say whether *value* is a :data:`TokenScope`."""
    if callable(value):
        return not inspect.iscoroutinefunction(value)
    return value is None or isinstance(value, str)


def scope_of(
    token_scope: TokenScope,
    ctx: ClientRequestContext,
    request: HttpRequest,
    key: Callable[[HttpRequest], str | None],
) -> str | None:
    """Return the scope of a call; its *key* by default."""
    if token_scope is None:
        return key(request)
    if isinstance(token_scope, str):
        return token_scope
    scope: object = token_scope(ctx, request)
    if scope is None or isinstance(scope, str):
        return scope
    raise bad_argument("token_scope", scope, "returns a str, or None")


def to_backoff(backoff_strategy: RetryBackoffStrategy) -> Backoff:
    """Make a :class:`.Backoff` that waits as a backoff strategy of Smithy's does.

    ``next_delay(n)`` is ``compute_next_backoff_delay(n)``.

    Args:
        backoff_strategy: Any object with that method.

    Raises:
        ValueError: It has no such method, or is a class.

    >>> backoff = to_backoff(ExponentialRetryBackoffStrategy(random=lambda: 0.0))
    >>> backoff.next_delay(3)
    0.05
    """
    check_backoff_strategy("backoff_strategy", backoff_strategy)
    return _StrategyBackoff(backoff_strategy)


def from_backoff(backoff: Backoff) -> RetryBackoffStrategy:
    """Make a backoff strategy for Smithy's strategies out of a :class:`.Backoff`.

    ``compute_next_backoff_delay(n)`` is ``next_delay(n)``, and 0.0 for the initial
    attempt. When the backoff has no further delay, it raises
    :class:`BackoffExhaustedError`, and the call ends with its last outcome.

    Args:
        backoff: The backoff.

    Raises:
        ValueError: *backoff* is not a :class:`.Backoff`.

    >>> from_backoff(Backoff.fixed(0.5)).compute_next_backoff_delay(1)
    0.5
    """
    check.kind("backoff", backoff, Backoff)
    return _BackoffStrategy(backoff)


@dataclass(frozen=True, slots=True)
class _StrategyBackoff(Backoff):
    backoff_strategy: RetryBackoffStrategy

    def next_delay(self, num_attempts_so_far: int) -> float | None:
        check.integer("num_attempts_so_far", num_attempts_so_far, 1)
        try:
            return self.backoff_strategy.compute_next_backoff_delay(num_attempts_so_far)
        except BackoffExhaustedError:
            return None

    def __repr__(self) -> str:
        return f"to_backoff({self.backoff_strategy!r})"


@dataclass(frozen=True, slots=True)
class _BackoffStrategy:
    backoff: Backoff

    def compute_next_backoff_delay(self, retry_attempt: int) -> float:
        check.integer("retry_attempt", retry_attempt, 0)
        if retry_attempt == 0:
            return 0.0
        delay = self.backoff.next_delay(retry_attempt)
        if delay is None:
            raise BackoffExhaustedError(f"no delay left after {retry_attempt} attempts")
        return delay

    def __repr__(self) -> str:
        return f"from_backoff({self.backoff!r})"
