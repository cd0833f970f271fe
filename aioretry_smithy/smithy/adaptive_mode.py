"""The rules of the adaptive mode: which token follows, whoever waits for it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from .._errors import bad_argument
from .errors import CapacityNotAvailableError, RetryError
from .profile import RetryProfile
from .rate_limiter import ClientRateLimiter
from .scopes import PerScope
from .standard_mode import StandardMode, StandardSettings

if TYPE_CHECKING:
    from .interfaces import RetryBackoffStrategy
    from .quota import StandardRetryQuota
    from .steps import Steps
    from .tokens import StandardRetryToken


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
        profile: RetryProfile = RetryProfile.V2_1,
        backoff_strategy: RetryBackoffStrategy | None = None,
        throttling_backoff_strategy: RetryBackoffStrategy | None = None,
        max_attempts: int | None = None,
        retry_quota: StandardRetryQuota | None = None,
        long_polling: bool = False,
        rate_limiter: ClientRateLimiter | None = None,
        fail_fast: bool = False,
    ) -> None:
        super().__init__(
            profile=profile,
            backoff_strategy=backoff_strategy,
            throttling_backoff_strategy=throttling_backoff_strategy,
            max_attempts=max_attempts,
            retry_quota=retry_quota,
            long_polling=long_polling,
        )
        if not (rate_limiter is None or isinstance(rate_limiter, ClientRateLimiter)):
            expected = "a ClientRateLimiter, or None"
            raise bad_argument("rate_limiter", rate_limiter, expected)
        if not isinstance(fail_fast, bool):
            raise bad_argument("fail_fast", fail_fast, "True or False")
        if fail_fast and long_polling:
            raise bad_argument("fail_fast", fail_fast, "False with long_polling=True")
        self.fail_fast = fail_fast
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

    @property
    def _waits(self) -> bool:
        return not self.fail_fast

    def _acquiring(self, token_scope: str | None) -> Steps[StandardRetryToken]:
        """Issue the token of the first attempt when the rate limiter grants it."""
        token = self._issue(token_scope)
        if not self.fail_fast:
            return (yield from self._admission(token))
        if wait := self.limiter_for(token_scope).try_acquire():
            raise CapacityNotAvailableError(wait)
        return token

    def _refreshing(
        self, token_to_renew: object, error: Exception
    ) -> Steps[StandardRetryToken]:
        token = yield from super()._refreshing(token_to_renew, error)
        if self.fail_fast:
            return token
        try:
            return (yield from self._admission(token))
        except GeneratorExit:
            # The garbage may be collected by somebody who holds the quota's lock.
            raise
        except BaseException:
            self._take_back(token)
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
        self._take_back(following)
        refusal = CapacityNotAvailableError(wait)
        raise RetryError(str(refusal), retry_after=wait) from error

    def _admission(self, token: StandardRetryToken) -> Steps[StandardRetryToken]:
        """Wait for the delay and for the rate limiter, in place of the caller."""
        if token.retry_delay:
            yield token.retry_delay
            token = replace(token, retry_delay=0.0)
        yield from self.limiter_for(token.token_scope)._acquiring()
        return token

    def _settings(self) -> dict[str, object]:
        settings = super()._settings()
        if self._limiters.given is not None:
            settings["rate_limiter"] = self._limiters.given
        if self.fail_fast:
            settings["fail_fast"] = True
        return settings
