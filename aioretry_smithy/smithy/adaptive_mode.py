"""The rules of the adaptive mode: which token follows, without the waiting."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, Unpack

from .._errors import bad_argument
from .errors import CapacityNotAvailableError, RetryError
from .rate_limiter import ClientRateLimiter
from .scopes import PerScope
from .standard_mode import StandardMode, StandardSettings

if TYPE_CHECKING:
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
            return await self._wait_for_leave(token)
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
            return await self._wait_for_leave(token)
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

    async def _wait_for_leave(self, token: StandardRetryToken) -> StandardRetryToken:
        """Wait for the delay and for the rate limiter, in place of the caller."""
        if token.retry_delay:
            await self._pause(token.retry_delay)
            token = replace(token, retry_delay=0.0)
        await self.limiter_for(token.token_scope)._acquire(sleep=self._pause)
        return token

    def _settings(self) -> dict[str, object]:
        settings = super()._settings()
        if self._limiters.given is not None:
            settings["rate_limiter"] = self._limiters.given
        if self.fail_fast:
            settings["fail_fast"] = True
        return settings
