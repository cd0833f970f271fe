import asyncio
import logging
import sys

from service import service

from aioretry_smithy import (
    Backoff,
    LoggingClient,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
)

logging.basicConfig(stream=sys.stdout, format="%(levelname)s %(message)s")
strategy = RetryStrategy.failsafe(Backoff.exponential(0.05, 1.0).with_jitter(0.2))


async def main() -> None:
    async with service(503, 200) as url:
        builder = (
            SessionBuilder(url)
            .decorator(LoggingClient.new_decorator())
            .decorator(RetryingClient.new_decorator(strategy))
        )
        async with builder.build() as session, session.get("/orders"):
            pass


asyncio.run(main())
