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

logging.basicConfig(stream=sys.stdout, format="%(message)s", level=logging.INFO)

ONE_LINE_PER_CALL = LoggingClient.new_decorator(
    formatter=LogFormatter.json(nested=True, omit_empty=True),
    successful_response_log_level=logging.INFO,
)


async def main() -> None:
    strategy = RetryStrategy.on_server_error_status(Backoff.fixed(0.5))
    builder = (
        SessionBuilder("https://api.example.com")
        .decorator(ScriptedTransport([503, 200]))
        .decorator(RetryingClient.new_decorator(strategy))
        .decorator(ONE_LINE_PER_CALL)
    )
    async with builder.build() as session, session.get("/orders"):
        pass


asyncio.run(main())
