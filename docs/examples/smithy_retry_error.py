import asyncio

from aioretry_smithy import RequestLog, RetryingClient, SessionBuilder
from aioretry_smithy.smithy import RetryError, StandardRetryStrategy
from aioretry_smithy.testing import ScriptedTransport


async def main() -> None:
    strategy = StandardRetryStrategy(max_attempts=2)
    builder = (
        SessionBuilder("https://api.example.com")
        .decorator(ScriptedTransport([503, 503]))
        .decorator(RetryingClient.new_decorator(strategy, raise_retry_error=True))
    )
    async with builder.build() as session:
        try:
            await session.get("/orders")
        except RetryError as error:
            print(error)
            print(repr(error.__cause__), getattr(error.__cause__, "status", None))
            print(RequestLog.of(error).render())


asyncio.run(main())
