import asyncio
from contextlib import AbstractAsyncContextManager

import aiohttp

from aioretry_smithy import (
    Backoff,
    ClientRequestContext,
    HttpRequest,
    RequestLog,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
)
from aioretry_smithy.testing import ScriptedTransport


async def slow(ctx: ClientRequestContext, request: HttpRequest) -> int:
    await asyncio.sleep(2.0)
    return 200


async def report(call: AbstractAsyncContextManager[aiohttp.ClientResponse]) -> None:
    try:
        async with call as response:
            print(RequestLog.of(response).render(), end="\n\n")
    except TimeoutError as error:
        print(RequestLog.of(error).render(), end="\n\n")


async def main() -> None:
    strategy = RetryStrategy.failsafe(Backoff.fixed(0.5))
    builder = (
        SessionBuilder("https://api.example.com")
        .decorator(ScriptedTransport([slow] * 8))
        .decorator(RetryingClient.new_decorator(strategy, attempt_timeout=1.0))
        .response_timeout(3.0)
    )
    async with builder.build() as session:
        await report(session.get("/orders"))
        shorter = aiohttp.ClientTimeout(total=1.8)
        await report(session.get("/orders", timeout=shorter))


asyncio.run(main())
