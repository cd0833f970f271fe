import asyncio
from collections.abc import Iterable
from typing import Any

from aioretry_smithy import (
    Backoff,
    ClientRequestContext,
    RequestLog,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
)
from aioretry_smithy.testing import ScriptedTransport


class Alternating(RetryStrategy):
    """Each backoff allows two attempts in a row, and they take turns."""

    def __init__(self) -> None:
        self.backoffs: dict[int | None, Backoff] = {
            500: Backoff.fixed(0.1).with_max_attempts(2),
            503: Backoff.fixed(0.2).with_max_attempts(2),
        }

    def should_retry(
        self, ctx: ClientRequestContext, cause: Exception | None
    ) -> Backoff | None:
        return self.backoffs.get(ctx.log.response_status)


async def call(answers: Iterable[object], **settings: Any) -> None:
    builder = (
        SessionBuilder("https://api.example.com")
        .decorator(ScriptedTransport(answers))
        .decorator(RetryingClient.new_decorator(Alternating(), **settings))
    )
    async with builder.build() as session, session.get("/orders") as response:
        print(RequestLog.of(response).render(), end="\n\n")


async def main() -> None:
    await call([503, 503])
    await call([500, 503] * 5)
    await call([500, 503] * 5, max_total_attempts=4)


asyncio.run(main())
