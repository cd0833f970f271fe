import asyncio

import aiohttp

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitBreakerRule,
    ClientRequestContext,
    FailFastError,
    HttpRequest,
    SessionBuilder,
    new_response,
)
from aioretry_smithy.testing import ScriptedTransport

rules = (
    CircuitBreakerRule.ignore(methods=["POST"])
    | CircuitBreakerRule.success(statuses=[501])
    | CircuitBreakerRule.failure(statuses=[429], slower_than=2.0)
)


async def slow(
    ctx: ClientRequestContext, request: HttpRequest
) -> aiohttp.ClientResponse:
    await asyncio.sleep(2.5)
    return new_response(request, 200)


async def main() -> None:
    breaker = CircuitBreaker("orders", minimum_request_threshold=4)
    answers = [200, 501, slow, 429, slow]
    builder = (
        SessionBuilder("https://api.example.com")
        .decorator(ScriptedTransport(answers))
        .decorator(CircuitBreakerClient.new_decorator(breaker, rules))
    )
    async with builder.build() as session:
        for _ in answers:
            async with session.get("/orders") as response:
                print(response.status, breaker.state, breaker.event_count)
        try:
            await session.get("/orders")
        except FailFastError as error:
            print(error)


asyncio.run(main())
