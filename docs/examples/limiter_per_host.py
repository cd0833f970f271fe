import asyncio
from collections import defaultdict
from collections.abc import Awaitable
from functools import partial

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


class PerHost(RetryLimiter):
    """Give each host two retries at a time."""

    def __init__(self) -> None:
        new_limiter = partial(RetryLimiter.concurrency, 2)
        self.limiters = defaultdict[str | None, RetryLimiter](new_limiter)

    def limiter_of(self, ctx: ClientRequestContext) -> RetryLimiter:
        return self.limiters[ctx.request.url.host]

    def acquire(
        self, ctx: ClientRequestContext, cause: Exception | None
    ) -> bool | Awaitable[bool]:
        return self.limiter_of(ctx).acquire(ctx, cause)

    def release(self, ctx: ClientRequestContext) -> Awaitable[None] | None:
        return self.limiter_of(ctx).release(ctx)

    def on_retry_end(self, ctx: ClientRequestContext) -> Awaitable[None] | None:
        return self.limiter_of(ctx).on_retry_end(ctx)

    def on_success(self, ctx: ClientRequestContext) -> Awaitable[None] | None:
        return self.limiter_of(ctx).on_success(ctx)

    def on_failure(
        self, ctx: ClientRequestContext, cause: Exception | None
    ) -> Awaitable[None] | None:
        return self.limiter_of(ctx).on_failure(ctx, cause)


async def call(limiter: RetryLimiter, host: str) -> str:
    decorator = RetryingClient.new_decorator(
        RetryStrategy.failsafe(Backoff.fixed(0.1)), limiter=limiter
    )
    builder = (
        SessionBuilder(f"https://{host}")
        .decorator(ScriptedTransport([503, 200]))
        .decorator(decorator)
    )
    async with builder.build() as session, session.get("/") as response:
        log = RequestLog.of(response)
    return f"{host}: {response.status}, attempts: {log.total_attempts}"


async def main() -> None:
    limiter = PerHost()
    hosts = ["orders.example.com"] * 3 + ["stock.example.com"]
    for line in await asyncio.gather(*(call(limiter, host) for host in hosts)):
        print(line)


asyncio.run(main())
