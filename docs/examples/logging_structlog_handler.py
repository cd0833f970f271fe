import asyncio
import logging
import sys

import structlog
from structlog.typing import EventDict

from aioretry_smithy import LogFormatter, LoggingClient, RequestLog, SessionBuilder
from aioretry_smithy.testing import ScriptedTransport


class OneLine(LogFormatter):
    """Write one line per call: the request and its outcome."""

    def format_request(self, log: RequestLog) -> None:
        return None

    def format_response(self, log: RequestLog) -> str:
        return log.render().partition("\n")[0]


def expand_log(logger: object, name: str, event: EventDict) -> EventDict:
    if event.get("request_log") is not None:
        event["request_log"] = event["request_log"].to_dict()
    return event


formatter = structlog.stdlib.ProcessorFormatter(
    foreign_pre_chain=[
        structlog.stdlib.add_log_level,
        structlog.stdlib.ExtraAdder(allow=["request_log"]),
    ],
    processors=[
        structlog.stdlib.ProcessorFormatter.remove_processors_meta,
        expand_log,
        structlog.processors.JSONRenderer(),
    ],
)
handler = logging.StreamHandler(sys.stdout)
handler.setFormatter(formatter)
logging.basicConfig(handlers=[handler], level=logging.INFO)

LOGGING = LoggingClient.new_decorator(
    logging.getLogger("shop.http"),
    formatter=OneLine(),
    successful_response_log_level=logging.INFO,
)


async def main() -> None:
    builder = (
        SessionBuilder("https://api.example.com")
        .decorator(ScriptedTransport([200]))
        .decorator(LOGGING)
    )
    async with builder.build() as session, session.get("/orders"):
        pass


asyncio.run(main())
