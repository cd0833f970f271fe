import asyncio
import json
import logging
import sys

from aioretry_smithy import LogFormatter, LoggingClient, RequestLog, SessionBuilder
from aioretry_smithy.testing import ScriptedTransport


class OneLine(LogFormatter):
    """Write one line per call: the request and its outcome."""

    def format_request(self, log: RequestLog) -> None:
        return None

    def format_response(self, log: RequestLog) -> str:
        return log.render().partition("\n")[0]


class JsonFormatter(logging.Formatter):
    """Write any record as a JSON object, with the log of a call as data."""

    def format(self, record: logging.LogRecord) -> str:
        shown = {
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        log = getattr(record, "request_log", None)
        if log is not None:
            shown["call"] = log.to_dict()
        return json.dumps(shown)


handler = logging.StreamHandler(sys.stdout)
handler.setFormatter(JsonFormatter())
logging.basicConfig(handlers=[handler], level=logging.INFO)

LOGGING = LoggingClient.new_decorator(
    logging.getLogger("shop.http"),
    formatter=OneLine(),
    successful_response_log_level=logging.INFO,
)


async def main() -> None:
    logging.getLogger("shop").info("the shop opens")
    builder = (
        SessionBuilder("https://api.example.com")
        .decorator(ScriptedTransport([200]))
        .decorator(LOGGING)
    )
    async with builder.build() as session, session.get("/orders"):
        pass


asyncio.run(main())
