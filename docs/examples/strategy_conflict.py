import asyncio

from aioretry_smithy import (
    Backoff,
    ClientRequestContext,
    RequestLog,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
    is_timeout,
    is_unprocessed,
)
from aioretry_smithy.testing import ScriptedTransport


class RetryOnConflict(RetryStrategy):
    """Wait until the other customer has released the order."""

    def __init__(self) -> None:
        self.backoff = Backoff.of_default()  # made once, returned each time

    def should_retry(
        self, ctx: ClientRequestContext, cause: Exception | None
    ) -> Backoff | None:
        if is_timeout(cause) or is_unprocessed(cause):
            return self.backoff
        if ctx.log.response_status == 409:
            return self.backoff
        return None  # stop: this outcome goes to the caller


async def main() -> None:
    builder = (
        SessionBuilder("https://api.example.com")
        .decorator(ScriptedTransport([409, 409, 200]))
        .decorator(RetryingClient.new_decorator(RetryOnConflict()))
    )
    async with builder.build() as session, session.put("/orders/1") as response:
        print(RequestLog.of(response).render())


asyncio.run(main())
