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


async def main() -> None:
    decorator = RetryingClient.new_decorator(
        RetryStrategy.failsafe(Backoff.fixed(0.1)),
        max_total_attempts=3,
        limiter=RetryLimiter.token_based(10, 5, token_ratio=0.1),
    )
    builder = (
        SessionBuilder("https://api.example.com")
        .decorator(ScriptedTransport([503] * 7))
        .decorator(decorator)
    )
    async with builder.build() as session:
        for _ in range(4):
            async with session.get("/orders") as response:
                log = RequestLog.of(response)
            print(f"attempts: {log.total_attempts}, {log.stop_reason}")


asyncio.run(main())
