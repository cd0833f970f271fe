"""The vectors of the standard mode, those of all SDKs and of the guide."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

from aioretry_smithy.smithy.interfaces import (
    ExponentialBackoffJitterType,
    ExponentialRetryBackoffStrategy,
)
from aioretry_smithy.smithy.limiters import RetryProfile, StandardRetryQuota
from aioretry_smithy.smithy.strategies import StandardRetryStrategy

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
