from typing import Any

import aiohttp

from aioretry_smithy import Backoff, RetryingClient, RetryStrategy, SessionBuilder

BACKOFF = Backoff.exponential(0.2, 10.0).with_full_jitter()


def new_session(base_url: str) -> aiohttp.ClientSession:
    strategy = RetryStrategy.failsafe(BACKOFF)
    retrying = RetryingClient.new_decorator(strategy, max_total_attempts=3)
    builder = SessionBuilder(base_url, raise_for_status=True)
    return builder.decorator(retrying).build()


async def fetch_order(session: aiohttp.ClientSession) -> Any:
    async with session.get("/orders/7") as response:
        return await response.json()


async def place_order(session: aiohttp.ClientSession, order: Any) -> None:
    async with session.post("/orders", data=order):
        pass


async def upload(session: aiohttp.ClientSession, file: Any) -> None:
    async with session.put("/report", data=file):
        pass
