"""The strategies of each mode, with tokens, and the rules of each transition."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final, Generic, TypedDict, TypeVar, Unpack

from .. import _checks as check
from .._errors import bad_argument, shown
from .._failures.hints import RetryInfo
from .._values import BoundedMap, NeverCopied, Shared
from .interfaces import (
    CapacityNotAvailableError,
    ExponentialBackoffJitterType,
    ExponentialRetryBackoffStrategy,
    RetryBackoffStrategy,
    RetryError,
    SimpleRetryToken,
    StandardRetryToken,
    ask_for_delay,
    check_backoff_strategy,
    use_token,
)
from .limiters import ClientRateLimiter, RetryProfile, StandardRetryQuota

T = TypeVar("T")


class PerScope(Generic[T]):
    """One object for each scope, made on demand, or a given one for all of them.

    Threads may ask at once. Of 1024 scopes those stay that were asked for last.
    """

    given: T | None
    """The one for all, or None."""

    def __init__(self, factory: Callable[[], T], given: T | None = None) -> None:
        self.given = given
        self._made = BoundedMap(lambda scope: factory())
        self._lock = threading.Lock()

    def get(self, token_scope: str | None = None) -> T:
        """Return the object of a scope; None and an empty str are the same scope."""
        check.kind("token_scope", token_scope, str, or_none=True)
        if self.given is not None:
            return self.given
        with self._lock:
            return self._made.get(token_scope or "")


class SimpleMode(NeverCopied):
    """The rules of the simple mode without its methods: which token follows, when."""

    backoff_strategy: RetryBackoffStrategy
    """The strategy that computes the delays in the tokens."""

    max_attempts: int
    """Attempts of a call, including the first."""

    def __init__(
        self,
        *,
        backoff_strategy: RetryBackoffStrategy | None = None,
        max_attempts: int = 5,
    ) -> None:
        if backoff_strategy is None:
            backoff_strategy = ExponentialRetryBackoffStrategy()
        check_backoff_strategy("backoff_strategy", backoff_strategy)
        check.integer("max_attempts", max_attempts, 1)
        self.backoff_strategy = backoff_strategy
        self.max_attempts = max_attempts

    def _acquire(self, token_scope: str | None) -> SimpleRetryToken:
        """Return the token of the first attempt."""
        check.kind("token_scope", token_scope, str, or_none=True)
        delay = ask_for_delay(self.backoff_strategy, 0)
        return SimpleRetryToken(retry_count=0, retry_delay=delay, _issuer=self)

    def _refresh(self, token_to_renew: object, error: Exception) -> SimpleRetryToken:
        """Return the token of the next attempt."""
        token = use_token("token_to_renew", token_to_renew, SimpleRetryToken, self)
        info = RetryInfo.of(error)
        retry_count = self._next_retry_count(token, error, info)
        own = ask_for_delay(self.backoff_strategy, retry_count, error)
        delay = max(own, info.retry_after or 0.0)
        return SimpleRetryToken(
            retry_count=retry_count, retry_delay=delay, _own_delay=own, _issuer=self
        )

    def _record_success(self, token: object) -> None:
        """Take back the token of an attempt that succeeded."""
        use_token("token", token, SimpleRetryToken, self)

    def _next_retry_count(
        self, token: SimpleRetryToken, error: Exception, info: RetryInfo
    ) -> int:
        """Return what the next token counts, if error and attempts allow a retry."""
        if not info.allows_retry:
            raise RetryError(f"the error allows no retry: {shown(error)}") from error
        if token.attempt_count >= self.max_attempts:
            raise RetryError(f"all attempts are made: {self.max_attempts}") from error
        return token.attempt_count

    def _settings(self) -> dict[str, object]:
        """Return the arguments that make such a strategy, None or False by default."""
        return {
            "backoff_strategy": self.backoff_strategy,
            "max_attempts": self.max_attempts,
        }

    def __repr__(self) -> str:
        given = [
            f"{name}={value!r}"
            for name, value in self._settings().items()
            if value is not None and value is not False
        ]
        return f"{type(self).__name__}({', '.join(given)})"


class StandardStrategySettings(TypedDict, total=False):
    """The keyword arguments of the standard mode."""

    profile: RetryProfile
    backoff_strategy: RetryBackoffStrategy | None
    throttling_backoff_strategy: RetryBackoffStrategy | None
    max_attempts: int | None
    retry_quota: StandardRetryQuota | None
    long_polling: bool


class StandardMode(Shared, SimpleMode):
    """The rules of the standard mode without its methods: which token follows, when."""

    profile: Final[RetryProfile]
    """The constants."""

    throttling_backoff_strategy: Final[RetryBackoffStrategy]
    """The strategy that computes the delays where the server throttles."""

    long_polling: Final[bool]
    """Whether a retry that the quota refuses is waited for all the same."""

    _may_wait: bool
    """Whether the strategy itself waits when a token is acquired or refreshed."""

    def __init__(
        self,
        *,
        profile: RetryProfile = RetryProfile.V2_1,
        backoff_strategy: RetryBackoffStrategy | None = None,
        throttling_backoff_strategy: RetryBackoffStrategy | None = None,
        max_attempts: int | None = None,
        retry_quota: StandardRetryQuota | None = None,
        long_polling: bool = False,
    ) -> None:
        check.kind("profile", profile, RetryProfile)
        if backoff_strategy is None:
            backoff_strategy = _backoff(profile, profile.backoff_scale_value)
        if throttling_backoff_strategy is None:
            scale = profile.throttling_backoff_scale_value
            throttling_backoff_strategy = _backoff(profile, scale)
        if max_attempts is None:
            max_attempts = profile.max_attempts
        super().__init__(backoff_strategy=backoff_strategy, max_attempts=max_attempts)
        check_backoff_strategy(
            "throttling_backoff_strategy", throttling_backoff_strategy
        )
        check.kind("retry_quota", retry_quota, StandardRetryQuota, or_none=True)
        check.boolean("long_polling", long_polling)
        self.profile = profile
        self.throttling_backoff_strategy = throttling_backoff_strategy
        self.long_polling = self._may_wait = long_polling
        new_quota = partial(StandardRetryQuota, profile=profile)
        self._quotas = PerScope(new_quota, retry_quota)

    def quota_for(self, token_scope: str | None = None) -> StandardRetryQuota:
        """Return the quota that pays for the retries of a scope.

        Args:
            token_scope: What :meth:`acquire_initial_retry_token` got; the retrying
                client passes ``host:port``. None is the scope without a name.

        Raises:
            ValueError: *token_scope* is no str, nor None.

        >>> StandardRetryStrategy().quota_for("example.com:443").available_capacity
        500
        """
        return self._quotas.get(token_scope)

    def _acquire(self, token_scope: str | None) -> StandardRetryToken:
        check.kind("token_scope", token_scope, str, or_none=True)
        return StandardRetryToken(
            retry_count=0,
            retry_delay=ask_for_delay(self.backoff_strategy, 0),
            token_scope=token_scope,
            _issuer=self,
        )

    async def _pause(self, seconds: float) -> None:
        """Sleep for *seconds*."""
        await asyncio.sleep(seconds)

    async def _wait_to_acquire(self, token_scope: str | None) -> StandardRetryToken:
        """Acquire a token, and wait until its attempt may be made."""
        return self._acquire(token_scope)

    async def _wait_to_refresh(
        self, token_to_renew: object, error: Exception
    ) -> StandardRetryToken:
        """Refresh a token, report the outcome, and wait where that is wanted."""
        token = use_token("token_to_renew", token_to_renew, StandardRetryToken, self)
        self._report(token, throttled=RetryInfo.of(error).is_throttling_error)
        try:
            return self._next_token(token, error)
        except RetryError as refusal:
            if self.long_polling and refusal.retry_after is not None:
                await self._pause(refusal.retry_after)
            raise

    def _record_success(self, token: object) -> None:
        """Take back the token of an attempt that succeeded, and refund it."""
        spent = use_token("token", token, StandardRetryToken, self)
        self._report(spent, throttled=False)
        quota = self.quota_for(spent.token_scope)
        quota.release(release_amount=spent.quota_acquired)

    def _refresh(self, token_to_renew: object, error: Exception) -> StandardRetryToken:
        """Refresh a token without a report and without waiting."""
        token = use_token("token_to_renew", token_to_renew, StandardRetryToken, self)
        return self._next_token(token, error)

    def _report(self, token: StandardRetryToken, *, throttled: bool) -> None:
        """Learn from the outcome of an attempt, where a strategy does."""

    def _next_token(
        self, token: StandardRetryToken, error: Exception
    ) -> StandardRetryToken:
        info = RetryInfo.of(error)
        retry_count = self._next_retry_count(token, error, info)
        own, delay = self._delays(retry_count, error, info)
        try:
            cost = self.quota_for(token.token_scope).acquire(error=error)
        except RetryError as refusal:
            raise RetryError(str(refusal), retry_after=delay) from error
        return StandardRetryToken(
            retry_count=retry_count,
            retry_delay=delay,
            _own_delay=own,
            quota_acquired=cost,
            token_scope=token.token_scope,
            _issuer=self,
        )

    def _release(self, token: StandardRetryToken) -> None:
        """Pay back what a retry has cost that will not be made."""
        # In full: nothing was sent, so it is no success, whose refund may be another.
        self.quota_for(token.token_scope)._add(token.quota_acquired)

    def _delays(
        self, retry_count: int, error: Exception, info: RetryInfo
    ) -> tuple[float, float]:
        """Return the delay of the backoff, and the delay by the hint."""
        backoff_strategy = (
            self.throttling_backoff_strategy
            if info.is_throttling_error
            else self.backoff_strategy
        )
        delay = ask_for_delay(backoff_strategy, retry_count, error)
        if info.retry_after is None:
            return delay, delay
        added = self.profile.max_added_delay
        longest = self.profile.max_backoff if added is None else delay + added
        return delay, max(delay, min(info.retry_after, longest))

    def _settings(self) -> dict[str, object]:
        names = "backoff_strategy", "throttling_backoff_strategy", "max_attempts"
        settings = {name: getattr(self, name) for name in ("profile", *names)}
        quota, long_polling = self._quotas.given, self.long_polling
        return {**settings, "retry_quota": quota, "long_polling": long_polling}


def _backoff(profile: RetryProfile, scale: float) -> ExponentialRetryBackoffStrategy:
    return ExponentialRetryBackoffStrategy(
        backoff_scale_value=scale,
        max_backoff=profile.max_backoff,
        jitter_type=ExponentialBackoffJitterType.FULL,
    )


class AdaptiveSettings(StandardStrategySettings, total=False):
    """The keyword arguments of the adaptive mode."""

    rate_limiter: ClientRateLimiter | None
    fail_fast: bool


class AdaptiveMode(StandardMode):
    """The rules of the adaptive mode without its methods: which token follows, when."""

    fail_fast: Final[bool]
    """Whether to refuse instead of waiting for the rate limiter."""

    def __init__(
        self,
        *,
        rate_limiter: ClientRateLimiter | None = None,
        fail_fast: bool = False,
        **settings: Unpack[StandardStrategySettings],
    ) -> None:
        super().__init__(**settings)
        check.kind("rate_limiter", rate_limiter, ClientRateLimiter, or_none=True)
        check.boolean("fail_fast", fail_fast)
        if fail_fast and self.long_polling:
            raise bad_argument("fail_fast", fail_fast, "False with long_polling=True")
        self.fail_fast = fail_fast
        self._may_wait = not fail_fast
        self._limiters = PerScope(ClientRateLimiter, rate_limiter)

    def limiter_for(self, token_scope: str | None = None) -> ClientRateLimiter:
        """Return the rate limiter of a scope.

        Args:
            token_scope: What :meth:`acquire_initial_retry_token` got; the retrying
                client passes ``host:port``. None is the scope without a name.

        Raises:
            ValueError: *token_scope* is no str, nor None.

        >>> AdaptiveRetryStrategy().limiter_for("example.com:443").enabled
        False
        """
        return self._limiters.get(token_scope)

    async def _wait_to_acquire(self, token_scope: str | None) -> StandardRetryToken:
        token = self._acquire(token_scope)
        if not self.fail_fast:
            return await self._wait_for_rate(token)
        if wait := self.limiter_for(token_scope).try_acquire():
            raise CapacityNotAvailableError(wait)
        return token

    async def _wait_to_refresh(
        self, token_to_renew: object, error: Exception
    ) -> StandardRetryToken:
        token = await super()._wait_to_refresh(token_to_renew, error)
        if self.fail_fast:
            return token
        try:
            return await self._wait_for_rate(token)
        except GeneratorExit:
            # The garbage may be collected where the quota's lock is held.
            raise
        except BaseException:
            self._release(token)
            raise

    def _report(self, token: StandardRetryToken, *, throttled: bool) -> None:
        self.limiter_for(token.token_scope).update(throttled=throttled)

    def _next_token(
        self, token: StandardRetryToken, error: Exception
    ) -> StandardRetryToken:
        following = super()._next_token(token, error)
        if not self.fail_fast:
            return following
        wait = self.limiter_for(following.token_scope).try_acquire()
        if not wait:
            return following
        self._release(following)
        refusal = CapacityNotAvailableError(wait)
        raise RetryError(str(refusal), retry_after=wait) from error

    async def _wait_for_rate(self, token: StandardRetryToken) -> StandardRetryToken:
        """Wait for the delay and for the rate limiter, in place of the caller."""
        if token.retry_delay:
            await self._pause(token.retry_delay)
            token = replace(token, retry_delay=0.0)
        await self.limiter_for(token.token_scope)._acquire(sleep=self._pause)
        return token

    def _settings(self) -> dict[str, object]:
        limiter, fail_fast = self._limiters.given, self.fail_fast
        return {**super()._settings(), "rate_limiter": limiter, "fail_fast": fail_fast}


class SimpleRetryStrategy(SimpleMode):
    """Retries as long as errors and attempts allow, and waits in between.

    Nothing limits the retries of all calls together, so a server that is down gets
    *max_attempts* times its usual load: prefer :class:`StandardRetryStrategy`.

    Args:
        backoff_strategy: Computes the delays; ``ExponentialRetryBackoffStrategy()`` by
            default. If the server asks for a longer wait, that is the delay.
        max_attempts: Attempts of one call, the first one included, >= 1.

    Raises:
        ValueError: An argument is not as described.

    Source: smithy-python, which does not look at ``retry_after``.

    >>> SimpleRetryStrategy(max_attempts=3).max_attempts
    3
    """

    async def acquire_initial_retry_token(
        self, *, token_scope: str | None = None
    ) -> SimpleRetryToken:
        """Return the token of the first attempt.

        Args:
            token_scope: Makes no difference here.
        """
        return self._acquire(token_scope)

    async def refresh_retry_token_for_retry(
        self, *, token_to_renew: Any, error: Exception
    ) -> SimpleRetryToken:
        """Return the token of the next attempt.

        Args:
            token_to_renew: The token of the attempt that failed.
            error: What it failed with.

        Raises:
            RetryError: The error allows no retry, or there were enough attempts.
            TypeError: *token_to_renew* is no token of this library.
            ValueError: It was issued by another strategy, or used before.
        """
        return self._refresh(token_to_renew, error)

    async def record_success(self, *, token: Any) -> None:
        """Take back the token of an attempt that succeeded.

        Args:
            token: The token.

        Raises:
            TypeError: *token* is no token of this library.
            ValueError: It was issued by another strategy, or used before.
        """
        self._record_success(token)


class StandardRetryStrategy(StandardMode):
    """Retries as long as error, attempts and quota allow, and waits in between.

    After a failed attempt it asks, in this order: does the error allow a retry, are
    there attempts left, can the quota pay. It pays only if all three allow the retry.

    Before retry *n* the delay is ``random() * min(scale * 2 ** (n - 1), max_backoff)``,
    where *scale* is greater if the server throttles. If the server asks for a longer
    wait, the delay grows to that, but by no more than ``max_added_delay`` (where the
    profile has none: no further than ``max_backoff``).

    A success refunds what the last retry of the call has cost, or what the profile
    says; a success without any retry adds ``no_retry_increment``.

    Calls, sessions, event loops and threads may share one strategy. A copy of it is
    the strategy itself.

    Args:
        profile: The constants. The prices and refunds among them are for the quotas
            that the strategy makes: a *retry_quota* has a profile of its own.
        backoff_strategy: Computes the delays, in place of the profile's.
        throttling_backoff_strategy: The same for errors that throttle, for which
            *backoff_strategy* is not asked.
        max_attempts: Attempts of one call, the first one included, >= 1; by default
            what the profile says.
        retry_quota: Pays for all retries, also those of other strategies that have it,
            at the prices of its own profile. None: a quota of 500 tokens for each
            scope, up to 1024 scopes, at the prices of *profile*.
        long_polling: Whether to wait for the delay of a retry that the quota refuses,
            before the call fails. For calls in an endless loop, which would otherwise
            not wait at all.

    Raises:
        ValueError: An argument is not as described.

    Source: the AWS SDKs and smithy-python, whose class of this name it is.

    >>> async def call():
    ...     strategy = StandardRetryStrategy(max_attempts=2)
    ...     token = await strategy.acquire_initial_retry_token()
    ...     error = CallError("503", fault="server")
    ...     token = await strategy.refresh_retry_token_for_retry(
    ...         token_to_renew=token, error=error
    ...     )
    ...     await strategy.record_success(token=token)
    ...     return token.attempt_count, token.quota_acquired
    >>> asyncio.run(call())
    (2, 14)
    """

    async def acquire_initial_retry_token(
        self, *, token_scope: str | None = None
    ) -> StandardRetryToken:
        """Return the token of the first attempt.

        Args:
            token_scope: What the calls have in common that share a quota and a rate.

        Raises:
            CapacityNotAvailableError: The rate limiter of an adaptive strategy does not
                grant it now, and *fail_fast* is True.
        """
        return await self._wait_to_acquire(token_scope)

    async def refresh_retry_token_for_retry(
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
            TypeError: *token_to_renew* is no token of this library.
            ValueError: It was issued by another strategy, or used before.
        """
        return await self._wait_to_refresh(token_to_renew, error)

    async def record_success(self, *, token: Any) -> None:
        """Take back the token of an attempt that succeeded, and refund it.

        Args:
            token: The token.

        Raises:
            TypeError: *token* is no token of this library.
            ValueError: It was issued by another strategy, or used before.
        """
        self._record_success(token)


class AdaptiveRetryStrategy(AdaptiveMode, StandardRetryStrategy):
    """The standard strategy with a rate limiter in front of every attempt.

    Once the server has throttled, attempts are sent only as fast as it lets through:
    see :class:`ClientRateLimiter`. A call that is too early waits inside
    :meth:`acquire_initial_retry_token` and :meth:`refresh_retry_token_for_retry`: first
    for the delay of the backoff, then for the rate limiter. The delay in the token is
    then 0, so make the attempt at once.

    In a loop of your own, report each outcome: a failure by a refresh, a success by
    :meth:`record_success`. The rate limiter learns from both.

    Args:
        rate_limiter: Limits all attempts, also those of other strategies that have it.
            None: a rate limiter for each scope, up to 1024 of them.
        fail_fast: Whether to refuse instead of waiting: a call by a
            :exc:`CapacityNotAvailableError`, a retry by a :exc:`RetryError`. A retry is
            then granted before its delay, which is in its token. Not together with
            *long_polling*, which waits.
        settings: The arguments of :class:`StandardRetryStrategy`.

    Raises:
        ValueError: An argument is not as described.

    Source: the ``adaptive`` mode of the AWS SDKs, which smithy-python does not have.

    >>> async def call():
    ...     strategy = AdaptiveRetryStrategy()
    ...     token = await strategy.acquire_initial_retry_token()
    ...     error = CallError("429", is_throttling_error=True)
    ...     token = await strategy.refresh_retry_token_for_retry(
    ...         token_to_renew=token, error=error
    ...     )
    ...     await strategy.record_success(token=token)
    ...     return token.retry_delay, strategy.limiter_for().enabled
    >>> with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
    ...     runner.run(call())
    (0.0, True)
    """
