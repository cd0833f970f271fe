"""Never run: what users write with strategies and protocols of Smithy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, assert_type

from aioretry_smithy import (
    Backoff,
    ClientRequestContext,
    HttpRequest,
    RetryConfig,
    RetryingClient,
    smithy,
)
from aioretry_smithy.smithy import sync


@dataclass(frozen=True)
class Leave:
    """A token of one's own, frozen."""

    retry_count: int
    retry_delay: float


class Synchronous:
    """A strategy as the design document of smithy-python has it."""

    def __init__(self) -> None:
        self.backoff_strategy = smithy.ExponentialRetryBackoffStrategy()
        self.max_attempts = 3

    def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> Leave:
        """Return the token of the first attempt."""
        return Leave(0, 0.0)

    def refresh_retry_token_for_retry(
        self, *, token_to_renew: Leave, error: Exception
    ) -> Leave:
        """Return the token of the next attempt."""
        if not smithy.RetryInfo.of(error).allows_retry:
            raise smithy.RetryError("no", retry_after=None) from error
        count = token_to_renew.retry_count + 1
        delay = self.backoff_strategy.compute_next_backoff_delay(count)
        return Leave(count, delay)

    def record_success(self, *, token: Leave) -> None:
        """Take the token back."""


class Asynchronous:
    """The same, as in smithy-python today."""

    backoff_strategy = smithy.from_backoff(Backoff.fixed(1))
    max_attempts = 3

    async def acquire_initial_retry_token(
        self, *, token_scope: str | None = None
    ) -> Leave:
        """Return the token of the first attempt."""
        return Leave(0, 0.0)

    async def refresh_retry_token_for_retry(
        self, *, token_to_renew: Leave, error: Exception
    ) -> Leave:
        """Return the token of the next attempt."""
        raise smithy.RetryError("enough")

    async def record_success(self, *, token: Leave) -> None:
        """Take the token back."""


def conflicts(
    failure: smithy.Failure, previous: smithy.RetryAction | None
) -> smithy.RetryAction | None:
    """Judge a 409."""
    return smithy.RetryAction.retry() if failure.status == 409 else None


def tenant(ctx: ClientRequestContext, request: HttpRequest) -> str | None:
    """Name the scope of a call."""
    return request.headers.get("X-Tenant")


async def use_smithy() -> None:
    """Give strategies of all kinds to a client, and use one without."""
    strategies: list[smithy.RetryStrategy] = [
        smithy.SimpleRetryStrategy(),
        smithy.StandardRetryStrategy(profile=smithy.RetryProfile.V2_0),
        smithy.AdaptiveRetryStrategy(rate_limiter=smithy.ClientRateLimiter()),
        smithy.RetryMode.of("adaptive").new_strategy(max_attempts=4),
        smithy.new_strategy("standard", initial_backoff=0.1, max_backoff=5.0),
        smithy.strategy_from_env(),
        await smithy.RetryStrategyResolver().resolve_retry_strategy(
            retry_strategy=smithy.RetryStrategyOptions(retry_mode="adaptive")
        ),
    ]
    for strategy in strategies:
        RetryingClient.new_decorator(
            strategy,
            classifiers=(*smithy.DEFAULT_CLASSIFIERS, conflicts),
            raise_retry_error=True,
            token_scope=tenant,
        )
    RetryingClient.new_decorator(Synchronous(), max_total_attempts=3)
    RetryingClient.new_decorator(Asynchronous(), classifiers=[conflicts])
    standard = smithy.StandardRetryStrategy()
    token = await standard.acquire_initial_retry_token(token_scope="orders")
    assert_type(token, smithy.StandardRetryToken)
    assert_type(token.retry_delay, float)
    assert_type(await standard.record_success(token=token), None)
    assert_type(standard.quota_for("orders").available_capacity, int)
    assert_type(smithy.to_backoff(standard.backoff_strategy), Backoff)
    RetryConfig(standard, token_scope="orders")


# pyright: reportUnnecessaryTypeIgnoreComment=true


@dataclass(kw_only=True)
class RegionToken(smithy.RetryToken):
    """A token with one thing more, made by keyword."""

    retry_count: int
    retry_delay: float
    region: str = "eu"


class CountedToken(smithy.RetryToken):
    """A token that is no dataclass of its own, and changes."""

    def __init__(self) -> None:
        self.retry_count = 0
        self.retry_delay = 0.0


class ForgetfulToken(smithy.RetryToken):
    """A token that does not declare its fields again."""


@dataclass(frozen=True)
class FrozenToken:
    """A token that derives from nothing."""

    retry_count: int
    retry_delay: float


@dataclass
class DelayedToken:
    """A token whose delay may be nothing, as in Smithy's guide."""

    retry_count: int
    retry_delay: float | None


class PlainStrategy(smithy.RetryStrategy):
    """A strategy as smithy-python's design has it, with attributes of its own."""

    def __init__(self, max_attempts: int) -> None:
        self.backoff_strategy = smithy.ExponentialRetryBackoffStrategy()
        self.max_attempts = max_attempts

    def acquire_initial_retry_token(
        self, *, token_scope: str | None = None
    ) -> RegionToken:
        """Return the token of the first attempt."""
        return RegionToken(retry_count=0, retry_delay=0.0, region=token_scope or "")

    def refresh_retry_token_for_retry(
        self, *, token_to_renew: smithy.RetryToken, error: Exception
    ) -> smithy.RetryToken:
        """Return the token of the next attempt."""
        count = token_to_renew.retry_count + 1
        if count >= self.max_attempts:
            raise smithy.RetryError("enough") from error
        delay = self.backoff_strategy.compute_next_backoff_delay(count)
        return RegionToken(retry_count=count, retry_delay=delay)

    def record_success(self, *, token: smithy.RetryToken) -> None:
        """Take the token back."""


class AwaitedStrategy(smithy.RetryStrategy):
    """A strategy as smithy-python has it today, around another one."""

    def __init__(self, inner: smithy.StandardRetryStrategy) -> None:
        self.inner = inner
        self.backoff_strategy = inner.backoff_strategy
        self.max_attempts = inner.max_attempts

    async def acquire_initial_retry_token(
        self, *, token_scope: str | None = None
    ) -> smithy.RetryToken:
        """Return the token of the first attempt."""
        return await self.inner.acquire_initial_retry_token(token_scope=token_scope)

    async def refresh_retry_token_for_retry(
        self, *, token_to_renew: smithy.RetryToken, error: Exception
    ) -> smithy.RetryToken:
        """Return the token of the next attempt."""
        return await self.inner.refresh_retry_token_for_retry(
            token_to_renew=token_to_renew, error=error
        )

    async def record_success(self, *, token: smithy.RetryToken) -> None:
        """Take the token back."""
        await self.inner.record_success(token=token)


class FrozenTokens:
    """A strategy that derives from nothing, with tokens that do not change."""

    def acquire_initial_retry_token(
        self, *, token_scope: str | None = None
    ) -> FrozenToken:
        """Return the token of the first attempt."""
        return FrozenToken(0, 0.0)

    async def refresh_retry_token_for_retry(
        self, *, token_to_renew: FrozenToken, error: Exception
    ) -> DelayedToken:
        """Return the token of the next attempt."""
        return DelayedToken(token_to_renew.retry_count + 1, None)

    def record_success(self, *, token: Any) -> None:
        """Take the token back."""


class ThreadStrategy(sync.RetryStrategy):
    """A strategy for loops without await, around another one."""

    def __init__(self, inner: sync.RetryStrategy) -> None:
        self.inner = inner
        self.backoff_strategy = inner.backoff_strategy
        self.max_attempts = inner.max_attempts

    def acquire_initial_retry_token(
        self, *, token_scope: str | None = None
    ) -> smithy.RetryToken:
        """Return the token of the first attempt."""
        return self.inner.acquire_initial_retry_token(token_scope=token_scope)

    def refresh_retry_token_for_retry(
        self, *, token_to_renew: smithy.RetryToken, error: Exception
    ) -> smithy.RetryToken:
        """Return the token of the next attempt."""
        return self.inner.refresh_retry_token_for_retry(
            token_to_renew=token_to_renew, error=error
        )

    def record_success(self, *, token: smithy.RetryToken) -> None:
        """Take the token back."""
        self.inner.record_success(token=token)


class NoRefresh:
    """Something with two of the three methods."""

    def acquire_initial_retry_token(
        self, *, token_scope: str | None = None
    ) -> FrozenToken:
        """Return the token of the first attempt."""
        return FrozenToken(0, 0.0)

    def record_success(self, *, token: FrozenToken) -> None:
        """Take the token back."""


class SlowDownError(Exception, smithy.ErrorRetryInfo, smithy.HasFault):
    """An error that says what it means, by its class and by its instance."""

    is_throttling_error = True

    def __init__(self, retry_after: float) -> None:
        super().__init__(retry_after)
        self.is_retry_safe = True
        self.retry_after = retry_after
        self.fault = "client"


class VagueError(Exception, smithy.ErrorRetryInfo):
    """An error whose attributes are of another kind."""

    is_retry_safe = "yes"  # type: ignore[assignment]


class Linear:
    """A backoff strategy that derives from nothing."""

    def compute_next_backoff_delay(self, retry_attempt: int) -> float:
        """Return the seconds to wait."""
        return 0.1 * retry_attempt


def use_tokens() -> None:
    """Make tokens by keyword, and change them."""
    tokens: list[smithy.RetryToken] = [
        RegionToken(retry_count=0, retry_delay=0.5),
        CountedToken(),
        smithy.SimpleRetryToken(retry_count=0, retry_delay=0.0),
        smithy.StandardRetryToken(retry_count=0, retry_delay=0.0),
    ]
    for token in tokens:
        token.retry_count += 1
        token.retry_delay = 2.0
    RegionToken(0, 0.5)  # type: ignore[call-arg]
    RegionToken(retry_count="0", retry_delay=0.5)  # type: ignore[arg-type]
    ForgetfulToken()  # type: ignore[abstract]
    frozen: smithy.RetryToken = FrozenToken(0, 0.0)  # type: ignore[assignment]
    delayed: smithy.RetryToken = DelayedToken(0, None)  # type: ignore[assignment]
    print(frozen, delayed)


def use_errors() -> None:
    """Read and write what errors say."""
    error = SlowDownError(1.5)
    info: smithy.ErrorRetryInfo = error
    info.retry_after = None
    info.is_throttling_error = False
    at_fault: smithy.HasFault = error
    at_fault.fault = "server"
    at_fault.fault = "nobody"  # type: ignore[assignment]
    called: smithy.ErrorRetryInfo = smithy.CallError("503", fault="server")
    called.is_retry_safe = None
    smithy.StandardRetryStrategy(backoff_strategy=Linear())
    smithy.StandardRetryStrategy(backoff_strategy=0.5)  # type: ignore[arg-type]


def use_strategies() -> None:
    """Give strategies of all kinds to a client."""
    standard = smithy.StandardRetryStrategy()
    known: list[smithy.RetryStrategy] = [
        PlainStrategy(3),
        AwaitedStrategy(standard),
        standard,
        smithy.SimpleRetryStrategy(),
        smithy.AdaptiveRetryStrategy(),
    ]
    for strategy in known:
        strategy.max_attempts = 4
        strategy.backoff_strategy = Linear()
        RetryingClient.new_decorator(strategy)
    RetryingClient.new_decorator(FrozenTokens(), max_total_attempts=2)
    RetryConfig(FrozenTokens())
    RetryConfig(NoRefresh())  # type: ignore[arg-type]
    attributes: smithy.RetryStrategy = FrozenTokens()  # type: ignore[assignment]
    print(attributes)


def use_plain_strategies() -> None:
    """Use strategies without await, and give them to a client."""
    strategies: list[sync.RetryStrategy] = [
        sync.SimpleRetryStrategy(max_attempts=3),
        sync.StandardRetryStrategy(profile=smithy.RetryProfile.GUIDE),
        sync.AdaptiveRetryStrategy(sleep=print, clock=lambda: 0.0, fail_fast=True),
        ThreadStrategy(sync.StandardRetryStrategy()),
    ]
    for strategy in strategies:
        token = strategy.acquire_initial_retry_token()
        print(token.retry_delay)
        strategy.record_success(token=token)
        RetryingClient.new_decorator(strategy)
    sync.StandardRetryStrategy(fail_fast=True)  # type: ignore[call-arg]
    sync.AdaptiveRetryStrategy(max_attempts="3")  # type: ignore[arg-type]
    awaited: sync.RetryStrategy
    awaited = smithy.StandardRetryStrategy()  # type: ignore[assignment]
    print(awaited)
