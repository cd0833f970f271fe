"""Many calls of a real chain against faulty servers, in virtual time, and their lines.

Run by hand, it writes them into a file: ``python made_calls.py 20000 calls.jsonl``.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from pathlib import Path
from random import Random
from typing import Any

import aiohttp
from chains import set_time_of_day

from aioretry_smithy import (
    Backoff,
    CircuitBreakerClient,
    HedgingClient,
    LogFormatter,
    LoggingClient,
    LoggingRpcClient,
    RetryBudget,
    RetryingClient,
    RetryingRpcClient,
    RetryRuleWithContent,
    RetryStrategy,
    SessionBuilder,
    rpc,
)
from aioretry_smithy.testing import ScriptedTransport, VirtualTimeLoop

NESTED = LogFormatter.json(nested=True, omit_empty=True)
START = 1_795_000_000.0
"""When the loop's time begins, in seconds since 1970."""

RATE = 20.0
"""Calls that begin in a second."""

SHOP = "https://shop.example.com"
USERS = "https://users.example.com:8443"
STOCK = "https://stock.example.com"


class Servers:
    """Answers what it is asked for, and has its moods."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)

    async def answer(self, ctx: Any, request: Any) -> Any:
        """Take some time and give an answer, or none."""
        mood, dice = request.url.host.partition(".")[0], self.chance.random()
        await asyncio.sleep(0.01 * (1 + 4 * self.chance.random()))
        return await getattr(self, f"_{mood}")(dice)

    async def _shop(self, dice: float) -> Any:
        """Throttle, and have an error inside an answer now and then."""
        if dice < 0.03:
            return 429, {"error": "slow down"}, {"Retry-After": "2"}
        if dice < 0.05:
            return 200, {"error": "busy"}
        return 200, {"orders": [7]}

    async def _users(self, dice: float) -> Any:
        """Stall, break connections, and be out of order for a while."""
        now = asyncio.get_running_loop().time()
        if 120 <= now % 400 < 150 and dice < 0.7:
            return 503
        if dice < 0.02:
            await asyncio.sleep(30)
        if dice < 0.04:
            return aiohttp.ServerDisconnectedError()
        if dice < 0.05:
            return 404
        return 200, {"name": "Ada"}

    async def _stock(self, dice: float) -> Any:
        """Be slow at times, which a hedge helps against."""
        if dice < 0.1:
            await asyncio.sleep(0.8)
        return 500 if dice > 0.99 else (200, {"stock": 3})


class Lines(logging.Handler):
    """Collects the lines."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def session(servers: Servers, logger: logging.Logger) -> aiohttp.ClientSession:
    """Build a session with all that makes more than one request of a call."""
    backoff = Backoff.exponential(0.1, 2.0)
    busy = RetryRuleWithContent(on_content=_is_busy, backoff=backoff)
    return (
        SessionBuilder()
        .decorator(ScriptedTransport(iter(lambda: servers.answer, None)))
        .decorator(CircuitBreakerClient.new_per_host_decorator())
        .decorator(HedgingClient.new_decorator(0.5))
        .decorator(
            RetryingClient.new_decorator(
                busy | RetryStrategy.failsafe(backoff),
                max_total_attempts=3,
                attempt_timeout=2.0,
                limiter=RetryBudget(),
            )
        )
        .decorator(
            LoggingClient.new_decorator(logger, formatter=NESTED, log_after="body")
        )
        .response_timeout(10.0)
        .build()
    )


def _is_busy(content: bytes | None) -> bool:
    return content is not None and b"busy" in content


def page(client: aiohttp.ClientSession, logger: logging.Logger) -> Any:
    """Make a function that makes two calls at once, and one after them."""

    async def load_page(number: int) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(read(client, f"{USERS}/users/{number}", strict=True))
            group.create_task(read(client, f"{STOCK}/stock/{number}"))
        await read(client, f"{SHOP}/orders?user={number}")

    retry = RetryingRpcClient.new_decorator(
        RetryStrategy.failsafe(Backoff.fixed(0.3)), max_total_attempts=2
    )
    log = LoggingRpcClient.new_decorator(logger, formatter=NESTED)
    return rpc(retry, log, idempotent=True)(load_page)


async def read(
    client: aiohttp.ClientSession, url: str, *, strict: bool = False
) -> None:
    """Make a call and read the body."""
    async with client.get(url, raise_for_status=strict) as response:
        await response.read()


async def make_calls(number: int, seed: int, logger: logging.Logger) -> None:
    """Make calls one after another, which may be under way at the same time."""
    set_time_of_day(START)
    servers, chance = Servers(seed), Random(seed + 1)
    async with session(servers, logger) as client:
        load_page = page(client, logger)
        tasks = []
        for count in range(number):
            await asyncio.sleep(chance.expovariate(RATE))
            kind = chance.random()
            if kind < 0.1:
                made = load_page(count)
            elif kind < 0.5:
                made = read(client, f"{SHOP}/orders/{count}")
            elif kind < 0.8:
                made = read(client, f"{USERS}/users/{count}")
            else:
                made = read(client, f"{STOCK}/stock/{count}")
            tasks.append(asyncio.ensure_future(made))
        await asyncio.gather(*tasks, return_exceptions=True)


def made_lines(number: int, seed: int = 0) -> list[str]:
    """Return the lines of so many calls, with those that functions made."""
    logger, handler = logging.getLogger("made"), Lines()
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    logger.addHandler(handler)
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(make_calls(number, seed, logger))
    logger.removeHandler(handler)
    return handler.lines


if __name__ == "__main__":
    lines = made_lines(int(sys.argv[1]))
    Path(sys.argv[2]).write_text("\n".join(lines) + "\n", encoding="utf-8")
