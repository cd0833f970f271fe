"""The vectors of all SDKs, and the guide's, replayed through the bare strategy."""

import asyncio

import pytest
from smithy_vectors import load, read
from token_strategies import acquire, refresh, settled

from aioretry_smithy.smithy import sync
from aioretry_smithy.smithy.interfaces import (
    ExponentialBackoffJitterType,
    ExponentialRetryBackoffStrategy,
    RetryError,
)

VECTORS = load()
JITTER = read("backoff_jitter.json")["vectors"]


class AttemptError(Exception):
    """An attempt that failed, and says what the vector says about it."""

    def __init__(self, said):
        super().__init__(said)
        vars(self).update({"is_retry_safe": True, **said})


def outcome_of(refusal, error, token, strategy):
    """Say why there was no further token, judging by what the refusal says."""
    if not error.is_retry_safe:
        return "not_retryable"
    if refusal.retry_after is not None:
        return "quota_exceeded"
    assert strategy.max_attempts == token.attempt_count
    return "max_attempts_exceeded"


async def replay(strategy, call, now):
    """Make one call and return what happened after each attempt."""
    happened = []
    scope = "example.com:443"
    token = await acquire(strategy, scope)
    for step in call:
        started_at = now()
        delay = 0.0
        error = AttemptError(step.error or {})
        if step.outcome == "success":
            await settled(strategy.record_success(token=token))
            outcome = "success"
        else:
            try:
                token = await refresh(strategy, token, error)
                outcome, delay = "retry", token.retry_delay
            except RetryError as refusal:
                outcome = outcome_of(refusal, error, token, strategy)
        quota = strategy.quota_for(scope).available_capacity
        happened.append((outcome, quota, delay, now() - started_at))
    return happened


async def check(vector, strategy, now):
    for call in vector.calls:
        expected = [
            (step.outcome, step.quota, step.delay, step.refused_delay) for step in call
        ]
        happened = await replay(strategy, call, now)

        assert expected == [
            (outcome, quota, pytest.approx(delay), pytest.approx(waited))
            for outcome, quota, delay, waited in happened
        ]


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.id)
async def test_standard_vector(vector):
    """Outcome, quota, delay and wait are those of SDKs and guide, step by step."""
    loop = asyncio.get_running_loop()

    await check(vector, vector.new_strategy(), loop.time)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.id)
async def test_standard_vector_without_await(vector):
    """The same, by plain methods, and what is waited for the thread sleeps."""
    slept = [0.0]
    strategy = vector.new_strategy(sync.StandardRetryStrategy, sleep=slept.append)

    await check(vector, strategy, lambda: sum(slept))


@pytest.mark.parametrize(
    "vector", JITTER, ids=lambda vector: "{jitter} {scale} {max}".format(**vector)
)
def test_jitter_vector(vector):
    """The delays are those of smithy-python."""
    backoff = ExponentialRetryBackoffStrategy(
        backoff_scale_value=vector["scale"],
        max_backoff=vector["max"],
        jitter_type=ExponentialBackoffJitterType[vector["jitter"]],
        random=lambda: 0.5,
    )
    delays = [
        backoff.compute_next_backoff_delay(n) for n in range(len(vector["delays"]))
    ]

    assert vector["delays"] == pytest.approx(delays)


def test_no_vector_is_twice_there():
    """Each vector has a name of its own, so that a failure can be found."""
    ids = [vector.id for vector in VECTORS]

    assert len(ids) == len({*ids})
