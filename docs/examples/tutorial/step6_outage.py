import asyncio

from service import service

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerClient,
    FailFastError,
    RequestLog,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
)

strategy = RetryStrategy.failsafe(Backoff.exponential(0.02, 1.0).with_jitter(0.2))
breaker = CircuitBreaker("orders", minimum_request_threshold=4)


async def main() -> None:
    async with service(503) as url:
        builder = (
            SessionBuilder(url)
            .decorator(CircuitBreakerClient.new_decorator(breaker))
            .decorator(RetryingClient.new_decorator(strategy, max_total_attempts=3))
        )
        async with builder.build() as session:
            for _ in range(3):
                try:
                    async with session.get("/orders") as response:
                        print(RequestLog.of(response).render())
                except FailFastError as error:
                    print(RequestLog.of(error).render())


asyncio.run(main())
