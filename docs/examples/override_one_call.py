import asyncio
from contextlib import AbstractAsyncContextManager

import aiohttp

from aioretry_smithy import (
    Backoff,
    RequestLog,
    RetryConfig,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
    request_options,
)
from aioretry_smithy.testing import ScriptedTransport

silence = [lambda ctx, request: asyncio.sleep(3600)]
strategy = RetryStrategy.failsafe(Backoff.fixed(0.5))
builder = (
    SessionBuilder("https://api.example.com")
    .decorator(ScriptedTransport([503, 200, 503, *silence, 503, 201]))
    .decorator(RetryingClient.new_decorator(strategy))
    .response_timeout(10.0)
)


async def report(call: AbstractAsyncContextManager[aiohttp.ClientResponse]) -> None:
    try:
        async with call as response:
            print(RequestLog.of(response).render(), end="\n\n")
    except TimeoutError as error:
        print(RequestLog.of(error).render(), end="\n\n")


async def main() -> None:
    async with builder.build() as session:
        await report(session.get("/orders"))
        with request_options(retry=RetryConfig.no_retry()):
            await report(session.get("/health"))
        with request_options(response_timeout=2.0):
            longer = aiohttp.ClientTimeout(total=60.0)  # has no effect here
            await report(session.get("/orders", timeout=longer))
        with request_options(idempotent=True):
            await report(session.post("/orders", json={"id": 7}))


asyncio.run(main())
