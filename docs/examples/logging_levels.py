import asyncio
import logging
import sys
from contextlib import suppress

from aioretry_smithy import (
    LogFormatter,
    LoggingClient,
    RequestLog,
    SessionBuilder,
    is_timeout,
)
from aioretry_smithy.testing import ScriptedTransport

logging.basicConfig(stream=sys.stdout, format="%(levelname)-7s %(message)s")
logging.getLogger("aioretry_smithy").setLevel(logging.INFO)


class OneLine(LogFormatter):
    def format_request(self, log: RequestLog) -> None:
        return None

    def format_response(self, log: RequestLog) -> str:
        return log.render()


def by_outcome(log: RequestLog) -> int | None:
    if is_timeout(log.response_cause):
        return logging.ERROR
    if log.response_status == 404:
        return logging.DEBUG
    return None


async def main() -> None:
    logging_ = LoggingClient.new_decorator(
        failure_response_log_level=by_outcome, formatter=OneLine()
    )
    builder = (
        SessionBuilder("https://api.example.com")
        .decorator(ScriptedTransport([404, 503, TimeoutError("too late")]))
        .decorator(logging_)
    )
    async with builder.build() as session:
        await session.get("/unknown")
        await session.get("/busy")
        with suppress(TimeoutError):
            await session.get("/silent")


asyncio.run(main())
