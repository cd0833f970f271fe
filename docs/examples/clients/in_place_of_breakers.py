from typing import Any

import aiohttp

from aioretry_smithy import CircuitBreaker, CircuitBreakerClient, SessionBuilder


def new_breaker(host: str) -> CircuitBreaker:
    return CircuitBreaker(
        host,
        minimum_request_threshold=5,
        circuit_open_window=30.0,
    )


def new_session(base_url: str) -> aiohttp.ClientSession:
    breaking = CircuitBreakerClient.new_per_host_decorator(new_breaker)
    builder = SessionBuilder(base_url, raise_for_status=True)
    return builder.decorator(breaking).build()


async def fetch_order(session: aiohttp.ClientSession) -> Any:
    async with session.get("/orders/7") as response:
        return await response.json()
