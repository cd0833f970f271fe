"""Waits that servers ask for, over sockets and by the clock of each loop."""

import asyncio
import time

import pytest
from aiohttp import web
from chains import connected, retrying

from aioretry_smithy import Backoff, RetryStrategy

EXACTLY = RetryStrategy.failsafe(Backoff.without_delay())


class Throttling:
    """Sends each client away once, and notes when it did and when that came back."""

    def __init__(self, hint):
        self.hint = hint
        self.sent_away, self.came_back = [], []

    async def answer(self, request):
        if "armeria-retry-count" in request.headers:
            self.came_back.append(time.monotonic())
            return web.Response()
        self.sent_away.append(time.monotonic())
        return web.Response(status=429, headers={"Retry-After": self.hint})


@pytest.mark.parametrize("hint", ["0.0493", "0.05, 9", "0.1007"])
async def test_hint_with_decimals_is_never_waited_for_too_short(serving, hint):
    """Not by a part of a tick either."""
    server = Throttling(hint)
    running = await serving(server.answer)
    async with connected(running.make_url("/"), retrying(EXACTLY)) as session:
        for _ in range(5):
            async with session.get("/orders") as response:
                assert 200 == response.status

    waits = [
        back - away
        for away, back in zip(server.sent_away, server.came_back, strict=True)
    ]
    assert float(hint.partition(",")[0]) <= min(waits)


@pytest.mark.slow
async def test_clients_of_one_429_do_not_come_back_together(serving):
    """Thirty of them, within a time as long as the backoff."""
    server = Throttling("0.5")
    running = await serving(server.answer)
    for_half_a_second = retrying(RetryStrategy.failsafe(Backoff.fixed(0.5)))
    async with connected(running.make_url("/"), for_half_a_second) as session:
        await asyncio.gather(*(session.get(f"/{number}") for number in range(30)))

    assert 30 == len(server.came_back)
    first, last = min(server.came_back), max(server.came_back)
    assert 0.5 <= first - min(server.sent_away)
    assert 0.25 < last - first
