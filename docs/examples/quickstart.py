import asyncio

from aioretry_smithy import (
    CircuitBreakerClient,
    RequestLog,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
)
from aioretry_smithy.testing import ScriptedTransport

answers = [503, lambda ctx, request: asyncio.sleep(60), 200]
strategy = RetryStrategy.failsafe()
builder = (
    SessionBuilder("https://api.example.com")
    .decorator(ScriptedTransport(answers))  # without this line: the real network
    .decorator(CircuitBreakerClient.new_per_host_decorator())
    .decorator(RetryingClient.new_decorator(strategy, attempt_timeout=3.0))
    .response_timeout(10.0)
)


async def main() -> None:
    async with builder.build() as session, session.get("/orders") as response:
        print(RequestLog.of(response).render())


asyncio.run(main())
