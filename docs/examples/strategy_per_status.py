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


class BackoffByStatus(RetryStrategy):
    def __init__(self) -> None:
        self.on_server_error_or_timeout = Backoff.of_default()
        self.on_conflict = Backoff.fixed(0.1)

    def should_retry(
        self, ctx: ClientRequestContext, cause: Exception | None
    ) -> Backoff | None:
        if is_timeout(cause) or is_unprocessed(cause):
            return self.on_server_error_or_timeout
        status = ctx.log.response_status
        if status is None:
            return None
        if status >= 500:
            return self.on_server_error_or_timeout
        return self.on_conflict if status == 409 else None


async def main() -> None:
    builder = (
        SessionBuilder("https://api.example.com")
        .decorator(ScriptedTransport([503, 503, 409, 409, 503, 200]))
        .decorator(RetryingClient.new_decorator(BackoffByStatus()))
    )
    async with builder.build() as session, session.put("/orders/1") as response:
        print(RequestLog.of(response).render())


asyncio.run(main())
