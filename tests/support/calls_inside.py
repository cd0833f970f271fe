"""A session whose attempts take a second, and ask for something before."""

from __future__ import annotations

import asyncio

import aiohttp
from chains import now, session

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitState,
    ConcurrencyLimitingClient,
    RateLimitingClient,
    client_decorator,
)

BASE = "http://shop/"
OTHER = "http://auth/"


class Shop:
    """A session whose transport takes a second, and calls inside its attempts."""

    def __init__(self, *decorators, inner=200):
        self.sent = []
        self.inner = inner
        self.most = self.at_once = 0
        chain = [self.asking, *decorators]
        self.session = session([self.answer] * 50, *chain, base_url=BASE)
        self.ask = self.ask_once

    async def __aenter__(self):
        return self

    async def __aexit__(self, *error):
        await self.session.close()

    async def answer(self, ctx, request):
        self.sent.append((request.url.path, now()))
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        try:
            await asyncio.sleep(float(request.options.get("params", {}).get("s", 1)))
        finally:
            self.at_once -= 1
        return self.inner if request.url.path == "/inner" else 200

    def asking(self, delegate):
        @client_decorator
        async def asking(delegate, ctx, request):
            if request.url.path == "/orders":
                await self.ask()
            return await delegate.execute(ctx, request)

        return asking(delegate)

    async def ask_once(self):
        await self.get("/inner")

    async def get(self, url="/orders", seconds=1):
        """Return the status or the class of the failure, and when that came."""
        try:
            async with self.session.get(url, params={"s": seconds}) as response:
                return response.status, now()
        except aiohttp.ClientError as error:
            return type(error), now()


def place(limit=1, **settings):
    return ConcurrencyLimitingClient.new_decorator(limit, **settings)


def rate(limit, **settings):
    return RateLimitingClient.new_decorator(limit, **settings)


def half_open(**settings):
    breaker = CircuitBreaker("orders", trial_request_interval=60.0, **settings)
    breaker.enter_state(CircuitState.HALF_OPEN)
    return breaker


def breaking(breaker, *strategy, **settings):
    return CircuitBreakerClient.new_decorator(breaker, *strategy, **settings)
