import json
from typing import Any

import aiohttp

from aioretry_smithy import (
    Backoff,
    RetryConfig,
    RetryingClient,
    RetryRuleWithContent,
    RetryStrategy,
    SessionBuilder,
    request_options,
)

BACKOFF = Backoff.exponential(1.0, 30.0).with_full_jitter()
SAFELY = RetryConfig(RetryStrategy.failsafe(BACKOFF), max_total_attempts=3)


def new_session(base_url: str) -> aiohttp.ClientSession:
    builder = SessionBuilder(base_url, raise_for_status=True)
    return builder.decorator(RetryingClient.new_decorator(SAFELY)).build()


async def fetch_order(session: aiohttp.ClientSession) -> Any:
    async with session.get("/orders/7") as response:
        return await response.json()


async def place_order(session: aiohttp.ClientSession, order: Any) -> None:
    async with session.post("/orders", data=order):
        pass


async def fetch_in_time(session: aiohttp.ClientSession) -> Any:
    timeout = aiohttp.ClientTimeout(total=10)
    async with session.get("/orders/7", timeout=timeout) as response:
        return await response.json()


def is_pending(content: bytes | None) -> bool:
    return content is not None and json.loads(content)["state"] == "pending"


UNTIL_DONE = RetryConfig(
    RetryRuleWithContent(on_content=is_pending, backoff=Backoff.fixed(2.0)),
    max_total_attempts=3,
)


async def fetch_when_done(session: aiohttp.ClientSession) -> Any:
    with request_options(retry=UNTIL_DONE):
        async with session.get("/orders/7") as response:
            return await response.json()
