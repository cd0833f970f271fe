import asyncio

import aiohttp

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerClient,
    ClientRequestContext,
    HttpRequest,
    SessionBuilder,
    new_response,
)
from aioretry_smithy.testing import ScriptedTransport


async def no_orders(
    ctx: ClientRequestContext, request: HttpRequest
) -> aiohttp.ClientResponse:
    return new_response(request, 200, body=b"[]")


async def main() -> None:
    breaker = CircuitBreaker("orders", minimum_request_threshold=2)
    builder = (
        SessionBuilder("https://api.example.com")
        .decorator(ScriptedTransport([503, 503]))
        .decorator(CircuitBreakerClient.new_decorator(breaker, fallback=no_orders))
    )
    async with builder.build() as session:
        for _ in range(3):
            async with session.get("/orders") as response:
                print(response.status, breaker.state, await response.text())


asyncio.run(main())
