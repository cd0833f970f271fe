"""Two minutes of calls to a shop whose orders are slow at times, in virtual time.

Prints the slowest call to /orders; with the name of a file, writes a line for each.
"""

import argparse
import asyncio
import logging
import os
import random
import tempfile
from pathlib import Path

import aiohttp
from aiohttp import web

from aioretry_smithy import (
    Backoff,
    LogFormatter,
    LoggingClient,
    RequestLog,
    RetryStrategy,
    SessionBuilder,
)
from aioretry_smithy.testing import VirtualTimeLoop

CALLS = logging.getLogger("shop.calls")
CALLS.setLevel(logging.INFO)
CALLS.propagate = False


def new_session(connector: aiohttp.BaseConnector) -> aiohttp.ClientSession:
    one_line_per_call = LoggingClient.new_decorator(
        CALLS,
        formatter=LogFormatter.json(nested=True, omit_empty=True),
        log_after="body",
        successful_response_log_level=logging.INFO,
    )
    builder = SessionBuilder.standard(
        "http://shop.example",
        attempt_timeout=3.0,
        max_total_attempts=3,
        strategy=RetryStrategy.failsafe(
            Backoff.exponential(0.1, 20.0, 2.0).with_full_jitter()
        ),
        logging=one_line_per_call,
        connector=connector,
    )
    return builder.connection_timings().build()


class Shop:
    """Throttles some orders, says nothing to others, and has lost a few."""

    def __init__(self) -> None:
        self.chance = random.Random(1)

    async def order(self, request: web.Request) -> web.Response:
        luck = self.chance.random()
        if request.match_info["number"] in {"1080", "1200", "1320"}:
            return web.Response(status=503)
        if luck < 0.02:
            return web.Response(status=429, headers={"Retry-After": "1"})
        await asyncio.sleep(60.0 if luck > 0.99 else self.chance.uniform(0.02, 0.08))
        return web.json_response({"order": request.match_info["number"]})

    async def report(self, request: web.Request) -> web.Response:
        await asyncio.sleep(0.7)
        return web.json_response({"report": request.match_info["number"]})


async def call(session: aiohttp.ClientSession, path: str) -> RequestLog:
    async with session.get(path) as response:
        await response.read()
        return RequestLog.of(response)


async def work(session: aiohttp.ClientSession) -> list[RequestLog]:
    """Ask for three orders a second, and twice for twenty reports at once."""
    calls: list[asyncio.Task[RequestLog]] = []
    for number in range(360):
        paths = [f"/orders/{1000 + number}"]
        if number % 180 == 90:
            paths += [f"/reports/{each}" for each in range(20)]
        calls += [asyncio.create_task(call(session, path)) for path in paths]
        await asyncio.sleep(1 / 3)
    return await asyncio.gather(*calls)


async def play(pool: int) -> list[RequestLog]:
    """Make the calls through a pool of so many connections."""
    shop, app = Shop(), web.Application()
    app.router.add_get("/orders/{number}", shop.order)
    app.router.add_get("/reports/{number}", shop.report)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0)
    await runner.setup()
    with tempfile.TemporaryDirectory() as folder:
        # A socket in the file system answers at once, so virtual time can pass.
        socket = f"{folder}/shop"
        await web.UnixSite(runner, socket).start()
        async with new_session(aiohttp.UnixConnector(socket, limit=pool)) as session:
            logs = await work(session)
        await runner.cleanup()
    return logs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path, nargs="?", default=Path(os.devnull))
    parser.add_argument("--pool", type=int, default=5, help="connections at once: 5")
    parser.add_argument("--picture", type=Path, help="where to draw the slowest call")
    arguments = parser.parse_args()
    random.seed(1)  # the same jitter each time
    with (
        arguments.file.open("w", encoding="utf-8") as file,
        asyncio.Runner(loop_factory=VirtualTimeLoop) as runner,
    ):
        CALLS.handlers = [logging.StreamHandler(file)]
        logs = runner.run(play(arguments.pool))
    orders = [log for log in logs if "/orders/" in str(log.request_url)]
    slowest = max(orders, key=lambda log: log.duration or 0.0)
    print(slowest.render())
    if arguments.picture:
        slowest.to_svg(arguments.picture)


main()
