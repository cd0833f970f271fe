import asyncio
import errno

import aiohttp

from aioretry_smithy import RequestLog, RetryingClient, RetryRule, SessionBuilder
from aioretry_smithy.testing import ScriptedTransport


def is_reset(cause: Exception) -> bool:
    return isinstance(cause, OSError) and cause.errno == errno.ECONNRESET


rule = RetryRule(
    methods=["GET"], exceptions=[aiohttp.ServerDisconnectedError, is_reset]
)


async def main() -> None:
    reset = aiohttp.ClientOSError(errno.ECONNRESET, "Connection reset by peer")
    builder = (
        SessionBuilder("https://api.example.com")
        .decorator(ScriptedTransport([aiohttp.ServerDisconnectedError(), reset, 200]))
        .decorator(RetryingClient.new_decorator(rule))
    )
    async with builder.build() as session, session.get("/orders") as response:
        print(
            response.status, "after", RequestLog.of(response).total_attempts, "attempts"
        )


asyncio.run(main())
