"""Another proxy for the next attempt, and for the next calls."""

import asyncio
from collections import deque

import aiohttp

from aioretry_smithy import (
    Backoff,
    ClientRequestContext,
    HttpClient,
    HttpRequest,
    RequestLog,
    RetryingClient,
    RetryListener,
    RetryStrategy,
    SessionBuilder,
    client_decorator,
)
from aioretry_smithy.testing import ScriptedTransport


class Proxies(RetryListener):
    """Sends requests through one of several proxies, until that fails."""

    def __init__(self, *urls: str) -> None:
        self.urls = deque(urls)

    async def send(
        self, delegate: HttpClient, ctx: ClientRequestContext, request: HttpRequest
    ) -> aiohttp.ClientResponse:
        ctx.attributes["proxy"] = proxy = self.urls[0]
        return await delegate.execute(ctx, request.replace(proxy=proxy))

    def on_retry(
        self, ctx: ClientRequestContext, cause: Exception | None, delay: float
    ) -> None:
        failed = ctx.attributes["proxy"]
        # Another call may have left it already.
        if self.urls[0] == failed:
            self.urls.rotate(-1)
            print(f"{failed} failed: {cause!r}, next in {delay} s")


def answer(ctx: ClientRequestContext, request: HttpRequest) -> int:
    if request.options["proxy"] == "http://eu.proxy.example:3128":
        raise aiohttp.ClientConnectionError("no route")
    return 200


async def main() -> None:
    proxies = Proxies("http://eu.proxy.example:3128", "http://us.proxy.example:3128")
    transport = ScriptedTransport([answer] * 3)
    strategy = RetryStrategy.failsafe(Backoff.fixed(0.2))
    builder = (
        SessionBuilder("https://api.example.com")
        .decorator(transport)
        .decorator(client_decorator(proxies.send))
        .decorator(RetryingClient.new_decorator(strategy, listeners=[proxies]))
    )
    async with builder.build() as session:
        for _ in range(2):
            async with session.get("/orders") as response:
                print(RequestLog.of(response).total_attempts, "attempts")
    print([request.options["proxy"] for request in transport.requests][-1])


asyncio.run(main())
