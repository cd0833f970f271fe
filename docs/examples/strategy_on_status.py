import asyncio

from aioretry_smithy import (
    Backoff,
    RequestLog,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
    is_timeout,
)
from aioretry_smithy.testing import ScriptedTransport

BACKOFF = Backoff.fixed(0.5)


def on_conflict_or_timeout(
    status: int | None, cause: Exception | None
) -> Backoff | None:
    return BACKOFF if status == 409 or is_timeout(cause) else None


async def main() -> None:
    strategy = RetryStrategy.on_status(on_conflict_or_timeout)
    builder = (
        SessionBuilder("https://api.example.com")
        .decorator(ScriptedTransport([409, TimeoutError(), 500]))
        .decorator(RetryingClient.new_decorator(strategy))
    )
    async with builder.build() as session, session.get("/orders") as response:
        print(RequestLog.of(response).render())


asyncio.run(main())
