import asyncio

from aioretry_smithy import (
    Backoff,
    RequestLog,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
)
from aioretry_smithy.testing import ScriptedTransport


class Alternating(RetryStrategy):
    """Each backoff allows two attempts in a row, and they take turns."""

    def __init__(self):
        self.on_500 = Backoff.fixed(0.1).with_max_attempts(2)
        self.on_503 = Backoff.fixed(0.2).with_max_attempts(2)

    def should_retry(self, ctx, cause):
        return {500: self.on_500, 503: self.on_503}.get(ctx.log.response_status)


async def call(answers, **settings):
    builder = (
        SessionBuilder("https://api.example.com")
        .decorator(ScriptedTransport(answers))
        .decorator(RetryingClient.new_decorator(Alternating(), **settings))
    )
    async with builder.build() as session, session.get("/orders") as response:
        print(RequestLog.of(response).render(), end="\n\n")


async def main():
    await call([503, 503])
    await call([500, 503] * 5)
    await call([500, 503] * 5, max_total_attempts=4)


asyncio.run(main())
