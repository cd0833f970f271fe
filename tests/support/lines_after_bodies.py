"""Lines that come when a body has ended, and who reads the body."""

from __future__ import annotations

import asyncio
import contextvars
import json
import logging

from aioretry_smithy import LogFormatter, LoggingClient

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
