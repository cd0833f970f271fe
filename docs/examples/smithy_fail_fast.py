import asyncio

from aioretry_smithy import RequestLog, RetryingClient, SessionBuilder
from aioretry_smithy.smithy import AdaptiveRetryStrategy, CapacityNotAvailableError
from aioretry_smithy.testing import ScriptedTransport


async def main() -> None:
    strategy = AdaptiveRetryStrategy(fail_fast=True)
    builder = (
        SessionBuilder("https://orders.example.com")
        .decorator(ScriptedTransport([429]))
        .decorator(RetryingClient.new_decorator(strategy))
    )
    async with builder.build() as session:
        async with session.get("/orders") as response:
            print(RequestLog.of(response).render())
        try:
            await session.get("/orders")
        except CapacityNotAvailableError as error:
            print(error)
            print(RequestLog.of(error).render())


asyncio.run(main())
