import asyncio

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerClient,
    FailFastError,
    RequestLog,
    RetryingClient,
    RetryRule,
    SessionBuilder,
)
from aioretry_smithy.testing import ScriptedTransport

rule = RetryRule(
    status_classes=[5],
    on_timeout=True,
    on_unprocessed=True,
    backoff=Backoff.fixed(0.5),
)


async def main() -> None:
    breaker = CircuitBreaker("orders", minimum_request_threshold=3)
    builder = (
        SessionBuilder("https://api.example.com")
        .decorator(ScriptedTransport([503, 503, 503]))
        .decorator(CircuitBreakerClient.new_decorator(breaker))
        .decorator(RetryingClient.new_decorator(rule))
    )
    async with builder.build() as session:
        try:
            await session.get("/orders")
        except FailFastError as error:
            print(error)
            print(RequestLog.of(error).render())


asyncio.run(main())
