import asyncio

from aioretry_smithy import (
    Backoff,
    ClientRequestContext,
    RequestLog,
    RetryingClient,
    RetryLimiter,
    RetryStrategy,
    SessionBuilder,
)
from aioretry_smithy.testing import ScriptedTransport


class RetryThrottling(RetryLimiter):
    """Allows retries while more than half of the tokens are left, as gRPC does."""

    def __init__(self, max_tokens: float = 10, token_ratio: float = 0.1) -> None:
        self.max_tokens = max_tokens
        self.token_ratio = token_ratio
        self.tokens = max_tokens

    def acquire(self, ctx: ClientRequestContext, cause: Exception | None) -> bool:
        return self.tokens > self.max_tokens / 2

    def on_success(self, ctx: ClientRequestContext) -> None:
        self.tokens = min(self.tokens + self.token_ratio, self.max_tokens)

    def on_failure(self, ctx: ClientRequestContext, cause: Exception | None) -> None:
        self.tokens = max(self.tokens - 1, 0)


async def main() -> None:
    throttling = RetryThrottling()
    decorator = RetryingClient.new_decorator(
        RetryStrategy.failsafe(Backoff.fixed(0.1)),
        max_total_attempts=3,
        limiter=throttling,
    )
    builder = (
        SessionBuilder("https://api.example.com")
        .decorator(ScriptedTransport([503] * 7))
        .decorator(decorator)
    )
    async with builder.build() as session:
        for _ in range(4):
            async with session.get("/orders") as response:
                log = RequestLog.of(response)
            print(
                f"attempts: {log.total_attempts}, {log.stop_reason}, "
                f"{throttling.tokens} tokens left"
            )


asyncio.run(main())
