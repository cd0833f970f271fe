import asyncio

from aioretry_smithy import (
    Backoff,
    RequestLog,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
)
from aioretry_smithy.testing import ScriptedTransport


class AsLongAsSwitchedOn(RetryStrategy):
    """Ask a switch, somewhere else, before each retry."""

    def __init__(self, strategy, is_on):
        self.strategy = strategy
        self.is_on = is_on

    async def should_retry(self, ctx, cause):
        backoff = self.strategy.should_retry(ctx, cause)
        if backoff is None or not await self.is_on():
            return None
        return backoff


async def main():
    states = iter([True, False])

    async def is_on():
        return next(states)

    strategy = AsLongAsSwitchedOn(RetryStrategy.failsafe(Backoff.fixed(0.5)), is_on)
    builder = (
        SessionBuilder("https://api.example.com")
        .decorator(ScriptedTransport([503, 503]))
        .decorator(RetryingClient.new_decorator(strategy))
    )
    async with builder.build() as session, session.get("/orders") as response:
        print(RequestLog.of(response).render())


asyncio.run(main())
