"""One of the processes that share a rate: it calls until its input ends.

Run by test_shared_rate_limit.py. It prints when its calls went out, and its warnings.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time
from itertools import repeat

from aioretry_smithy import RateLimitingClient, SessionBuilder
from aioretry_smithy.limits import SharedRateLimit
from aioretry_smithy.testing import ScriptedTransport

TASKS = 5
BETWEEN_CALLS = 0.005


class Warnings(logging.Handler):
    """Keeps what is logged."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.messages = []

    def emit(self, record):
        self.messages.append(record.getMessage())


async def main(uri, rate):
    limit = SharedRateLimit(uri, rate, key="orders", implementation="redispy")
    builder = (
        SessionBuilder()
        .decorator(ScriptedTransport(repeat(200)))
        .decorator(RateLimitingClient.new_decorator(limit))
    )
    calls = []

    async def call_on_and_on():
        while True:
            async with session.get("http://orders.example.com/"):
                calls.append(time.time())
            await asyncio.sleep(BETWEEN_CALLS)

    warnings = Warnings()
    logging.getLogger("aioretry_smithy").addHandler(warnings)
    async with builder.build() as session:
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        tasks = [asyncio.create_task(call_on_and_on()) for _ in range(TASKS)]
        await asyncio.to_thread(sys.stdin.read)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    print(json.dumps({"calls": calls, "warnings": warnings.messages}))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
