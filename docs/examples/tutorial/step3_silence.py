import asyncio

from service import service

from aioretry_smithy import (
    Backoff,
    RequestLog,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
)

strategy = RetryStrategy.failsafe(Backoff.exponential(0.05, 1.0).with_jitter(0.2))


async def main() -> None:
    async with service(503, "silence", 200) as url:
        builder = SessionBuilder(url).decorator(
            RetryingClient.new_decorator(strategy, attempt_timeout=0.2)
        )
        async with builder.build() as session, session.get("/orders") as response:
            print(RequestLog.of(response).render())


asyncio.run(main())
