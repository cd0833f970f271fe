import asyncio
import logging
import sys

from aioretry_smithy import LoggingClient, RetryingClient, RetryStrategy, SessionBuilder
from aioretry_smithy.testing import ScriptedTransport

logging.basicConfig(stream=sys.stdout, format="%(message)s")
logging.getLogger("aioretry_smithy").setLevel(logging.DEBUG)


async def main() -> None:
    strategy = RetryStrategy.on_server_error_status()
    builder = (
        SessionBuilder("https://api.example.com")
        .decorator(ScriptedTransport([500, 500, 200]))
        .decorator(RetryingClient.new_decorator(strategy))
        .decorator(LoggingClient.new_decorator())
    )
    async with builder.build() as session, session.get("/orders"):
        pass


asyncio.run(main())
