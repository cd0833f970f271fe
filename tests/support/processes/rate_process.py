"""One of the processes that share a rate: it calls until its input ends.

Run by test_shared_rates.py. It prints when its calls went
out, what they cost, and its warnings. Costs are given as numbers with commas between
them, which calls have in turn; without any, each call is like the others.
"""

import asyncio
import json
import logging
import sys
import time
from itertools import cycle, repeat

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


def cost(ctx, request):
    """Take what the call says."""
    return int(request.url.name)


async def main(uri, rate, costs=""):
    limit = SharedRateLimit(
        uri, rate, key="orders", cost=cost if costs else None, implementation="redispy"
    )
    in_turn = cycle(costs.split(",") if costs else "1")
    builder = (
        SessionBuilder()
        .decorator(ScriptedTransport(repeat(200)))
        .decorator(RateLimitingClient.new_decorator(limit))
    )
    calls, spendings = [], []

    async def call_on_and_on():
        while True:
            spent = next(in_turn)
            async with session.get(f"http://orders.example.com/{spent}"):
                calls.append(time.time())
                spendings.append(int(spent))
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
    said = {"calls": calls, "costs": spendings, "warnings": warnings.messages}
    print(json.dumps(said))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
