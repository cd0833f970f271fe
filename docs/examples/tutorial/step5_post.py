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
once = {"Idempotency-Key": "3f2a"}


async def main() -> None:
    async with service(503, 503, 200) as url:
        builder = SessionBuilder(url).decorator(RetryingClient.new_decorator(strategy))
        async with builder.build() as session:
            async with session.post("/orders", json={"id": 3}) as response:
                print(RequestLog.of(response).render())
            async with session.post(
                "/orders", json={"id": 3}, headers=once
            ) as response:
                print(RequestLog.of(response).render())


asyncio.run(main())
