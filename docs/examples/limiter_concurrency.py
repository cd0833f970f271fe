import asyncio

from aioretry_smithy import (
    Backoff,
    RequestLog,
    RetryingClient,
    RetryLimiter,
    RetryStrategy,
    SessionBuilder,
)
from aioretry_smithy.testing import ScriptedTransport

limiter = RetryLimiter.concurrency(2)


async def call(name: str) -> str:
    decorator = RetryingClient.new_decorator(
        RetryStrategy.failsafe(Backoff.fixed(0.1)), limiter=limiter
    )
    builder = (
        SessionBuilder("https://api.example.com")
        .decorator(ScriptedTransport([503, 200]))
        .decorator(decorator)
    )
    async with builder.build() as session, session.get("/orders") as response:
        log = RequestLog.of(response)
    return f"{name}: {response.status}, attempts: {log.total_attempts}"


async def main() -> None:
    for line in await asyncio.gather(call("first"), call("second"), call("third")):
        print(line)
    print(await call("later"))


asyncio.run(main())
