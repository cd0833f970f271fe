"""Never run: what users write with strategies of Smithy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_type

from aioretry_smithy import (
    Backoff,
    ClientRequestContext,
    HttpRequest,
    RetryConfig,
    RetryingClient,
    smithy,
)


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
