import asyncio
import logging

import structlog
from structlog.typing import EventDict

from aioretry_smithy import LogFormatter, LoggingClient, RequestLog, SessionBuilder
from aioretry_smithy.testing import ScriptedTransport


class OneLine(LogFormatter):
    """Write one event per call: the request and its outcome."""

    def format_request(self, log: RequestLog) -> None:
        return None

    def format_response(self, log: RequestLog) -> str:
        return log.render().partition("\n")[0]


def expand_log(logger: object, name: str, event: EventDict) -> EventDict:
    if event.get("request_log") is not None:
        event["request_log"] = event["request_log"].to_dict()
    return event


structlog.configure(
    processors=[
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        expand_log,
        structlog.processors.JSONRenderer(),
    ]
)

LOGGING = LoggingClient.new_decorator(
    structlog.get_logger(),
    formatter=OneLine(),
    successful_response_log_level=logging.INFO,
)


async def main() -> None:
    builder = (
        SessionBuilder("https://api.example.com")
        .decorator(ScriptedTransport([200]))
        .decorator(LOGGING)
    )
    async with builder.build() as session:
        with structlog.contextvars.bound_contextvars(order=17):
            await session.get("/orders/17")


asyncio.run(main())
