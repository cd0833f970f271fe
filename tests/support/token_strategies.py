"""Strategies of Smithy's kind, and calls that they decide about."""

from __future__ import annotations

import asyncio
import inspect
from dataclasses import dataclass

from aioretry_smithy import Backoff
from aioretry_smithy.smithy import (
    AdaptiveRetryStrategy,
    CallError,
    RetryError,
    RetryInfo,
    StandardRetryStrategy,
    from_backoff,
)

SCOPE = "localhost:80"
THROTTLED = (429, {}, b"")
UNAVAILABLE = CallError("503", fault="server", status=503)


@dataclass(frozen=True)
class Token:
    """All that a token of one's own needs."""

    retry_count: int
    retry_delay: float


class Plain:
    """A strategy as the design document of smithy-python has it, and its memory."""

    backoff_strategy = from_backoff(Backoff.fixed(0.5))
    max_attempts = 3

    def __init__(self, initial_delay=0.0):
        self.initial_delay = initial_delay
        self.seen = []

    def acquire_initial_retry_token(self, *, token_scope=None):
        self.seen.append(("acquire", token_scope))
        return Token(0, self.initial_delay)

    def refresh_retry_token_for_retry(self, *, token_to_renew, error):
        self.seen.append(("refresh", token_to_renew.retry_count, str(error)))
        count = token_to_renew.retry_count + 1
        if count >= self.max_attempts or not RetryInfo.of(error).allows_retry:
            raise RetryError("no more")
        return Token(count, self.backoff_strategy.compute_next_backoff_delay(count))

    def record_success(self, *, token):
        self.seen.append(("success", token.retry_count))


class Async(Plain):
    """The same, as in smithy-python today."""

    async def acquire_initial_retry_token(self, *, token_scope=None):
        await asyncio.sleep(0)
        return super().acquire_initial_retry_token(token_scope=token_scope)

    async def refresh_retry_token_for_retry(self, *, token_to_renew, error):
        await asyncio.sleep(0)
        return super().refresh_retry_token_for_retry(
            token_to_renew=token_to_renew, error=error
        )

    async def record_success(self, *, token):
        await asyncio.sleep(0)
        super().record_success(token=token)


class Refusing(Plain):
    """Has no initial token for anybody."""

    def acquire_initial_retry_token(self, *, token_scope=None):
        raise RetryError("none left")


class Slow:
    """A backoff strategy that has the first attempt wait, too."""

    def compute_next_backoff_delay(self, retry_attempt):
        return 0.5


def standard(**settings):
    """Make a standard strategy whose delays are not left to chance."""
    settings.setdefault("backoff_strategy", from_backoff(Backoff.fixed(0.5)))
    settings.setdefault("throttling_backoff_strategy", from_backoff(Backoff.fixed(2.0)))
    return StandardRetryStrategy(**settings)


def adaptive(**settings):
    """Make an adaptive strategy whose delays are not left to chance."""
    fixed = from_backoff(Backoff.fixed(0.5))
    return AdaptiveRetryStrategy(
        backoff_strategy=fixed, throttling_backoff_strategy=fixed, **settings
    )


def available(strategy):
    return strategy.quota_for(SCOPE).available_capacity


async def settled(answer):
    return await answer if inspect.isawaitable(answer) else answer


async def acquire(strategy, scope=None):
    """Ask any strategy for the token of a first attempt."""
    return await settled(strategy.acquire_initial_retry_token(token_scope=scope))


async def refresh(strategy, token, error=UNAVAILABLE):
    """Ask any strategy for the token of the next attempt."""
    return await settled(
        strategy.refresh_retry_token_for_retry(token_to_renew=token, error=error)
    )


def drain(limiter):
    """Let a rate limiter grant one attempt in two seconds, and have none left."""
    limiter.update(throttled=True)
    while not limiter.try_acquire():
        pass
