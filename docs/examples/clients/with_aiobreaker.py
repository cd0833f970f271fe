from datetime import timedelta
from typing import Any

import aiobreaker
import aiohttp

breaker = aiobreaker.CircuitBreaker(
    fail_max=5,
    timeout_duration=timedelta(seconds=30),
)


def new_session(base_url: str) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(base_url, raise_for_status=True)


@breaker
async def fetch_order(session: aiohttp.ClientSession) -> Any:
    async with session.get("/orders/7") as response:
        return await response.json()
