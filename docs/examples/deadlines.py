import asyncio

import aiohttp

from aioretry_smithy import (
    Backoff,
    RequestLog,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
)
from aioretry_smithy.testing import ScriptedTransport


async def call_a_silent_server(backoff: Backoff) -> None:
    silence = [lambda ctx, request: asyncio.sleep(3600)] * 10
    strategy = RetryStrategy.on_server_error_status(backoff)
    builder = (
        SessionBuilder("https://api.example.com")
        .decorator(ScriptedTransport(silence))
        .decorator(RetryingClient.new_decorator(strategy, attempt_timeout=3.0))
        .response_timeout(10.0)
    )
    async with builder.build() as session:
        try:
            await session.get("/orders")
        except (aiohttp.ClientError, TimeoutError) as error:
            print("raised:", type(error).__name__)
            print(RequestLog.of(error).render(), end="\n\n")


async def main() -> None:
    await call_a_silent_server(Backoff.without_delay())
    await call_a_silent_server(Backoff.fixed(3.0))


asyncio.run(main())
