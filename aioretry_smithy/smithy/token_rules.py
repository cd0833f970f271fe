"""The rules of the modes: which token follows, and when."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, TypedDict, Unpack

from .._errors import bad_argument
from .._failures.retry_info import RetryInfo
from .._shown import shown
from .backoff import (
    ExponentialBackoffJitterType,
    ExponentialRetryBackoffStrategy,
    ask_for_delay,
    check_backoff_strategy,
)
from .errors import CapacityNotAvailableError, RetryError
from .quota import RetryProfile, StandardRetryQuota, check_profile
from .rate_limiter import ClientRateLimiter
from .shared import NeverCopied, Shared
from .tokens import (
    PerScope,
    SimpleRetryToken,
    StandardRetryToken,
    check_token_scope,
    use_token,
)

if TYPE_CHECKING:
    from .interfaces import RetryBackoffStrategy


class SimpleMode(NeverCopied):
    """Says which token follows, and when: the simple mode without its methods."""

    backoff_strategy: RetryBackoffStrategy
    """The strategy that computes the delays in the tokens."""

    max_attempts: int
    """Attempts of one call, the first one included."""

    def __init__(
        self,
        *,
        backoff_strategy: RetryBackoffStrategy | None = None,
        max_attempts: int = 5,
    ) -> None:
        if backoff_strategy is None:
            backoff_strategy = ExponentialRetryBackoffStrategy()
        check_backoff_strategy("backoff_strategy", backoff_strategy)
        check_max_attempts(max_attempts)
        self.backoff_strategy = backoff_strategy
        self.max_attempts = max_attempts

    def _acquire(self, token_scope: str | None) -> SimpleRetryToken:
        """Return the token of the first attempt."""
        check_token_scope(token_scope)
        delay = ask_for_delay(self.backoff_strategy, 0)
        return SimpleRetryToken(retry_count=0, retry_delay=delay, _issuer=self)

    def _refresh(self, token_to_renew: object, error: Exception) -> SimpleRetryToken:
        """Return the token of the next attempt."""
        token = use_token("token_to_renew", token_to_renew, SimpleRetryToken, self)
        retry_count = self._next_retry_count(token, error)
        own = ask_for_delay(self.backoff_strategy, retry_count, error)
        delay = max(own, RetryInfo.of(error).retry_after or 0.0)
        return SimpleRetryToken(
            retry_count=retry_count, retry_delay=delay, _own_delay=own, _issuer=self
        )

    def _record_success(self, token: object) -> None:
        """Take back the token of an attempt that succeeded."""
        use_token("token", token, SimpleRetryToken, self)

    def _next_retry_count(self, token: SimpleRetryToken, error: Exception) -> int:
        """Return what the next token counts, if error and attempts allow a retry."""
        if not RetryInfo.of(error).allows_retry:
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


def check_max_attempts(value: object) -> None:
    """Refuse an argument that is no number of attempts."""
    if type(value) is not int or value < 1:
        raise bad_argument("max_attempts", value, "an int >= 1")


class StandardSettings(TypedDict, total=False):
    """The keyword arguments of the standard mode."""

    profile: RetryProfile
    backoff_strategy: RetryBackoffStrategy | None
    throttling_backoff_strategy: RetryBackoffStrategy | None
    max_attempts: int | None
    retry_quota: StandardRetryQuota | None
    long_polling: bool


class StandardMode(Shared, SimpleMode):
    """Says which token follows, and when: the standard mode without its methods."""

    profile: Final[RetryProfile]
    """The constants."""

    throttling_backoff_strategy: Final[RetryBackoffStrategy]
    """The strategy that computes the delays where the server throttles."""

    long_polling: Final[bool]
    """Whether a retry that the quota refuses is waited for all the same."""

    _may_wait: bool
    """Whether it waits where a token is acquired or refreshed."""

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
        check_profile(profile)
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
        if not (retry_quota is None or isinstance(retry_quota, StandardRetryQuota)):
            expected = "a StandardRetryQuota, or None"
            raise bad_argument("retry_quota", retry_quota, expected)
        if not isinstance(long_polling, bool):
            raise bad_argument("long_polling", long_polling, "True or False")
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
        check_token_scope(token_scope)
        return StandardRetryToken(
            retry_count=0,
            retry_delay=ask_for_delay(self.backoff_strategy, 0),
            token_scope=token_scope,
            _issuer=self,
        )

    async def _pause(self, seconds: float) -> None:
        """Wait so many seconds."""
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
        retry_count = self._next_retry_count(token, error)
        own, delay = self._delays(retry_count, error)
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

    def _delays(self, retry_count: int, error: Exception) -> tuple[float, float]:
        """Return the delay of the backoff, and the one that follows the hint too."""
        info = RetryInfo.of(error)
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


class AdaptiveSettings(StandardSettings, total=False):
    """The keyword arguments of the adaptive mode."""

    rate_limiter: ClientRateLimiter | None
    fail_fast: bool


class AdaptiveMode(StandardMode):
    """Says which token follows, and when: the adaptive mode without its methods."""

    fail_fast: Final[bool]
    """Whether to refuse instead of waiting for the rate limiter."""

    def __init__(
        self,
        *,
        rate_limiter: ClientRateLimiter | None = None,
        fail_fast: bool = False,
        **settings: Unpack[StandardSettings],
    ) -> None:
        super().__init__(**settings)
        if not (rate_limiter is None or isinstance(rate_limiter, ClientRateLimiter)):
            expected = "a ClientRateLimiter, or None"
            raise bad_argument("rate_limiter", rate_limiter, expected)
        if not isinstance(fail_fast, bool):
            raise bad_argument("fail_fast", fail_fast, "True or False")
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
