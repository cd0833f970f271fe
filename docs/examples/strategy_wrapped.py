import asyncio
from collections.abc import Awaitable, Callable

from aioretry_smithy import (
    Backoff,
    ClientRequestContext,
    RequestLog,
    RetryDecision,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
)
from aioretry_smithy.testing import ScriptedTransport


class AsLongAsSwitchedOn(RetryStrategy):
    """Ask a switch in another service before each retry."""

    def __init__(
        self, strategy: RetryStrategy, is_on: Callable[[], Awaitable[bool]]
    ) -> None:
        self.strategy = strategy
        self.is_on = is_on

    async def should_retry(
        self, ctx: ClientRequestContext, cause: Exception | None
    ) -> Backoff | RetryDecision | None:
        answer = self.strategy.should_retry(ctx, cause)
        if isinstance(answer, Awaitable):
            answer = await answer
        if answer is None or not await self.is_on():
            return None
        return answer


async def main() -> None:
    states = iter([True, False])

    async def is_on() -> bool:
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
