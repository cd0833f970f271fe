"""The standard chain with ``enforce=False``: its breakers and limits do not act."""

from __future__ import annotations

import asyncio

import pytest
from chains import URL, after, now

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerClient,
    ConcurrencyLimit,
    EndpointGroup,
    FailFastError,
    RateLimit,
    RequestLog,
    SessionBuilder,
)
from aioretry_smithy.testing import ScriptedTransport

PLAIN = {"retrying": None, "logging": None}


def builder(answers=(), base_url=None, **settings):
    inside = [ScriptedTransport(answers)]
    return SessionBuilder.standard(base_url, inside=inside, **PLAIN, **settings)


@pytest.mark.parametrize(
    "settings",
    [
        {"concurrency": 1, "rate": RateLimit(1)},
        {"concurrency": "aimd", "rate": lambda key: RateLimit(1)},
        {"concurrency": ConcurrencyLimit.fixed(1), "rate": RateLimit(1)},
        {"concurrency": lambda key: 1, "rate": RateLimit(1)},
    ],
    ids=["numbers", "aimd", "objects", "functions"],
)
@pytest.mark.parametrize("base_url", [None, EndpointGroup.of("http://a", "http://b")])
def test_all_three_are_told(settings, base_url):
    """However they are made."""
    acting = builder(base_url=base_url, **settings).describe()
    dry = builder(base_url=base_url, enforce=False, **settings).describe()

    assert (0, 3) == tuple(text.count("enforce=False") for text in (acting, dry))


async def test_requests_wait_for_no_limit():
    """They go out at once."""
    limits = {"concurrency": 1, "rate": RateLimit(0.1)}
    async with builder(
        [after(1.0, 200)] * 3, enforce=False, **limits
    ).build() as client:
        await asyncio.gather(*(client.get(URL) for _ in range(3)))

    assert 1.0 == now()


async def test_no_circuit_refuses_a_request():
    """Though it is open."""
    async with builder([500] * 20, enforce=False).build() as client:
        logs = [RequestLog.of(await client.get(URL)) for _ in range(20)]

    assert all(log.sent for log in logs)


async def test_a_circuit_breaker_that_was_given_acts_as_it_says():
    """The argument is for what is made here."""
    breaker = CircuitBreaker(minimum_request_threshold=1)
    given = CircuitBreakerClient.new_decorator(breaker)
    async with builder([500], enforce=False, circuit_breaker=given).build() as client:
        await client.get(URL)
        with pytest.raises(FailFastError):
            await client.get(URL)


@pytest.mark.parametrize("enforce", [None, 1, "no"])
def test_it_is_true_or_false(enforce):
    """Nothing else."""
    with pytest.raises(ValueError, match="^enforce: "):
        builder(enforce=enforce)
