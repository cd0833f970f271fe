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
    async with service("silence") as url:
        builder = (
            SessionBuilder(url)
            .decorator(RetryingClient.new_decorator(strategy, attempt_timeout=0.2))
            .response_timeout(0.7)
        )
        async with builder.build() as session:
            try:
                await session.get("/orders")
            except TimeoutError as error:
                print(type(error).__name__)
                print(RequestLog.of(error).render())


asyncio.run(main())
