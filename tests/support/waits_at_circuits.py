"""Circuits that are waited at, and what comes of it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import aiohttp
from chains import URL, now

from aioretry_smithy import CircuitBreaker, CircuitBreakerClient

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioretry_smithy import Decorator


def breaker_of(
    window: Any = 1.0, kind: Callable[..., Any] = CircuitBreaker, **settings: Any
) -> Any:
    """Make a circuit breaker that opens at the first failure."""
    settings = {"consecutive_failures": 1, "circuit_open_window": window} | settings
    return kind("orders", **settings)


def waiting_at(
    breaker: CircuitBreaker, seconds: float = 5.0, **settings: Any
) -> Decorator:
    """Let requests wait at a circuit for so many seconds."""
    return CircuitBreakerClient.new_decorator(
        breaker, wait_for_ready=seconds, **settings
    )


async def end_of(
    client: aiohttp.ClientSession, at: float = 0.0, **options: Any
) -> tuple[float, Any]:
    """Make a call at a time; return its end and what it brought."""
    await asyncio.sleep(at - now())
    try:
        async with client.get(URL, **options) as response:
            return round(now(), 3), response.status
    except (aiohttp.ClientError, OSError) as error:
        return round(now(), 3), type(error)


def timers() -> int:
    """Return how many timers the loop has that were not cancelled."""
    loop: Any = asyncio.get_running_loop()
    return sum(not each.cancelled() for each in loop._scheduled)
