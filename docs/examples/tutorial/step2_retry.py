import asyncio

from service import service

from aioretry_smithy import RequestLog, RetryingClient, RetryStrategy, SessionBuilder


async def main() -> None:
    async with service(503, 200) as url:
        builder = SessionBuilder(url).decorator(
            RetryingClient.new_decorator(RetryStrategy.failsafe())
        )
        async with builder.build() as session, session.get("/orders") as response:
            print(response.status, await response.json())
            print(RequestLog.of(response).render())


asyncio.run(main())
