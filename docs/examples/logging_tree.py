import asyncio
import logging
import sys

from aioretry_smithy import (
    Backoff,
    LogFormatter,
    LoggingClient,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
)
from aioretry_smithy.testing import ScriptedTransport

logging.basicConfig(stream=sys.stdout, format="%(message)s")
logging.getLogger("aioretry_smithy").setLevel(logging.DEBUG)

TREES = LoggingClient.new_decorator(formatter=LogFormatter.tree())


async def main() -> None:
    strategy = RetryStrategy.on_server_error_status(Backoff.fixed(0.5))
    builder = (
        SessionBuilder("https://api.example.com")
        .decorator(ScriptedTransport([503, 200, 404]))
        .decorator(RetryingClient.new_decorator(strategy))
        .decorator(TREES)
    )
    async with builder.build() as session:
        for path in ("/orders", "/orders/3"):
            async with session.get(path):
                pass


asyncio.run(main())
