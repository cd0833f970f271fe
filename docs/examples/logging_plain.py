import asyncio
import json
import logging
import sys

from aioretry_smithy import LogFormatter, LoggingClient, SessionBuilder
from aioretry_smithy.testing import ScriptedTransport


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
    formatter=LogFormatter.line(),
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
