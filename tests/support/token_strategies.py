"""Strategies of tokens, and the vectors of the standard mode."""

from __future__ import annotations

import asyncio
import inspect
import json
from dataclasses import dataclass, replace
from pathlib import Path

from aioretry_smithy import Backoff
from aioretry_smithy.smithy import (
    AdaptiveRetryStrategy,
    CallError,
    RetryError,
    RetryInfo,
    StandardRetryStrategy,
    from_backoff,
)
from aioretry_smithy.smithy.interfaces import (
    ExponentialBackoffJitterType,
    ExponentialRetryBackoffStrategy,
)
from aioretry_smithy.smithy.limiters import RetryProfile, StandardRetryQuota

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


FOLDER = Path(__file__).parents[1] / "vectors"
FILES = (
    "standard_v2_0.json",
    "standard_v2_1.json",
    "standard_dynamodb.json",
    "standard_guide.json",
)


@dataclass(frozen=True, kw_only=True)
class Step:
    """One attempt: what the server answers, and what follows from it."""

    response: dict
    """Its ``status``, and perhaps ``headers`` and the error ``code`` of its body."""

    outcome: str
    """success, retry, not_retryable, max_attempts_exceeded or quota_exceeded."""

    quota: int
    """The units left in the quota then."""

    error: dict | None = None
    """The strategy's view of the failure, besides that it allows a retry."""

    delay: float = 0.0
    """Seconds before the next attempt."""

    refused_delay: float = 0.0
    """Seconds before the call fails, with long polling."""


@dataclass(frozen=True, kw_only=True)
class Vector:
    """Some calls, one after the other, at one strategy."""

    id: str
    name: str
    profile: RetryProfile
    initial_capacity: int
    max_attempts: int | None
    long_polling: bool
    chance: float
    calls: list[list[Step]]

    def new_strategy(self, kind=StandardRetryStrategy, **settings):
        """Make the strategy of the vector, with the chance that it asks for."""
        scales = (
            self.profile.backoff_scale_value,
            self.profile.throttling_backoff_scale_value,
        )
        backoff, throttling_backoff = (
            ExponentialRetryBackoffStrategy(
                backoff_scale_value=scale,
                max_backoff=self.profile.max_backoff,
                jitter_type=ExponentialBackoffJitterType.FULL,
                random=lambda: self.chance,
            )
            for scale in scales
        )
        return kind(
            profile=self.profile,
            backoff_strategy=backoff,
            throttling_backoff_strategy=throttling_backoff,
            max_attempts=self.max_attempts,
            retry_quota=StandardRetryQuota(self.initial_capacity, profile=self.profile),
            long_polling=self.long_polling,
            **settings,
        )


def read(name):
    """Return the content of a data file."""
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))


def load():
    """Return the vectors of all generations."""
    return [
        _vector(content["profile"], vector)
        for content in map(read, FILES)
        for vector in content["vectors"]
    ]


def _vector(profile, vector):
    given = vector["given"]
    return Vector(
        id=vector["id"],
        name=vector["name"],
        profile=replace(getattr(RetryProfile, profile), **given.get("profile", {})),
        initial_capacity=given["initial_capacity"],
        max_attempts=given.get("max_attempts"),
        long_polling=given.get("long_polling", False),
        chance=given.get("chance", 1.0),
        calls=[[Step(**step) for step in call] for call in vector["calls"]],
    )
