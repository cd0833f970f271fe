"""Calls to /orders are slow at times: the first screen of a report says why."""

from __future__ import annotations

import asyncio
import logging

import aiohttp
import pytest
from aiohttp import web

from aioretry_smithy import (
    Backoff,
    LogFormatter,
    LoggingClient,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
)
from aioretry_smithy.__main__ import main

pytestmark = pytest.mark.slow

SCREEN = 24
"""Lines that a terminal shows at once."""


class Service:
    """Answers orders, and does so late in one of three ways."""

    def __init__(self, trouble):
        self.trouble = trouble
        self.seen = 0

    async def orders(self, request):
        self.seen += 1
        if self.trouble == "throttles" and self.seen % 8 == 0:
            return web.Response(status=429, headers={"Retry-After": "1"})
        if self.trouble == "stalls" and self.seen % 8 == 0:
            await asyncio.sleep(60)
        await asyncio.sleep(0.1 if self.trouble == "is called too often" else 0.001)
        return web.json_response([])


async def many_calls(url, file, *, at_once):
    """Make calls as a program does that keeps a line of each."""
    logger, handler = logging.getLogger("orders"), logging.FileHandler(file)
    logger.setLevel(logging.DEBUG)
    logger.addHandler(handler)
    retries = RetryingClient.new_decorator(
        RetryStrategy.failsafe(Backoff.fixed(0.01)), attempt_timeout=1.0
    )
    lines = LoggingClient.new_decorator(
        logger,
        formatter=LogFormatter.json(nested=True, omit_empty=True),
        log_after="body",
    )
    builder = SessionBuilder(url, connector=aiohttp.TCPConnector(limit=2))
    builder.connection_timings().decorator(retries).decorator(lines)
    places = asyncio.Semaphore(at_once)
    async with builder.build() as session:

        async def call(number):
            async with places, session.get(f"/orders/{number}") as response:
                await response.read()

        await asyncio.gather(*map(call, range(24)))
    logger.removeHandler(handler)
    handler.close()


@pytest.mark.parametrize(
    ("trouble", "at_once", "cause"),
    [
        ("throttles", 2, "waiting for Retry-After"),
        ("stalls", 2, "failed attempts"),
        ("is called too often", 24, "the pool's queue"),
    ],
)
async def test_first_screen_names_the_cause(
    trouble, at_once, cause, aiohttp_server, tmp_path, capsys
):
    """In words, and with the path that was asked about."""
    service, file = Service(trouble), tmp_path / "calls.jsonl"
    app = web.Application()
    app.router.add_get("/orders/{number}", service.orders)
    server = await aiohttp_server(app)
    await many_calls(server.make_url("/"), file, at_once=at_once)

    assert 0 == await asyncio.to_thread(main, ["report", str(file)])
    screen = capsys.readouterr().out.splitlines()[:SCREEN]
    said = [line for line in screen if "the slowest 5 %" in line and "spent" in line]

    # Calls to one path are all calls: no second line says the same of it.
    assert 1 == len(said)
    # The largest part of the time comes first.
    assert cause in said[0].partition("spent ")[2].partition(", ")[0]
    assert any(line.startswith("/orders/* ") for line in screen)
