"""Calls whose lines end in a list, and lines that come after bodies."""

import asyncio
import contextvars
import json
import logging

from chains import session

from aioretry_smithy import LogFormatter, LoggingClient

URL = "http://example.com/orders"


class Sink(logging.Handler):
    """Keeps the records."""

    def __init__(self):
        super().__init__()
        self.records = []

    def emit(self, record):
        self.records.append(record)

    @property
    def lines(self):
        return [record.getMessage() for record in self.records]

    @property
    def kinds(self):
        """The level and the first word of each record."""
        return [
            (record.getMessage().partition(":")[0], record.levelno)
            for record in self.records
        ]


class CountingFormatter(LogFormatter):
    """Counts what it is asked for."""

    def __init__(self):
        self.asked = []

    def format_request(self, log):
        self.asked.append("request")
        return "Request"

    def format_response(self, log):
        self.asked.append("response")
        return "Response"


async def call(answers, *decorators, url=URL, **options):
    """Make a call through *decorators*, inner ones first; return how it ended."""
    async with session(answers, *decorators) as client:
        try:
            response = await client.get(url, **options)
        except BaseException as cause:
            return cause
        response.release()
        return response.status


USER = contextvars.ContextVar("user", default="nobody")


class Lines(logging.Handler):
    """Keeps what was written: the level, and the log as it was then."""

    def __init__(self):
        super().__init__()
        self.levels, self.logs, self.users = [], [], []
        self.came = asyncio.Event()

    def emit(self, record):
        self.levels.append(record.levelname)
        self.logs.append(json.loads(record.getMessage()))
        self.users.append(USER.get())
        self.came.set()

    def told(self, *keys):
        """Return some of the facts of each line."""
        return [tuple(log[key] for key in keys) for log in self.logs]


def logged(**settings):
    """Make a client that writes a line of JSON after each body."""
    return LoggingClient.new_decorator(
        logging.getLogger("shop"),
        formatter=LogFormatter.json(nested=True),
        log_after="body",
        **settings,
    )
