import asyncio
import logging
import sys

from aioretry_smithy import LogFormatter, LoggingClient, SessionBuilder
from aioretry_smithy.testing import ScriptedTransport

logging.basicConfig(stream=sys.stdout, format="%(message)s")


async def main() -> None:
    builder = (
        SessionBuilder("https://api.example.com")
        .decorator(ScriptedTransport([503]))
        .decorator(LoggingClient.new_decorator(formatter=LogFormatter.json()))
    )
    async with builder.build() as session:
        await session.get("/orders", params={"token": "abc", "page": "2"})


asyncio.run(main())
