import asyncio

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerClient,
    ClientRequestContext,
    FailFastError,
    RequestLog,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
    is_timeout,
    is_unprocessed,
)
from aioretry_smithy.testing import ScriptedTransport


class StopAtOpenCircuit(RetryStrategy):
    def __init__(self) -> None:
        self.backoff = Backoff.fixed(0.5)

    def should_retry(
        self, ctx: ClientRequestContext, cause: Exception | None
    ) -> Backoff | None:
        if isinstance(cause, FailFastError):
            return None  # the circuit is open: the next attempt would be refused too
        if is_timeout(cause) or is_unprocessed(cause):
            return self.backoff
        status = ctx.log.response_status
        return self.backoff if status is not None and status >= 500 else None


async def main() -> None:
    breaker = CircuitBreaker("orders", minimum_request_threshold=3)
    builder = (
        SessionBuilder("https://api.example.com")
        .decorator(ScriptedTransport([503, 503, 503]))
        .decorator(CircuitBreakerClient.new_decorator(breaker))
        .decorator(RetryingClient.new_decorator(StopAtOpenCircuit()))
    )
    async with builder.build() as session:
        try:
            await session.get("/orders")
        except FailFastError as error:
            print(error)
            print(RequestLog.of(error).render())


asyncio.run(main())
