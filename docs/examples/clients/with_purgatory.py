from typing import Any

import aiohttp
import purgatory

circuits = purgatory.AsyncCircuitBreakerFactory(default_threshold=5, default_ttl=30)


def new_session(base_url: str) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(base_url, raise_for_status=True)


async def fetch_order(session: aiohttp.ClientSession) -> Any:
    async with (
        await circuits.get_breaker("orders"),
        session.get("/orders/7") as response,
    ):
        return await response.json()
