import asyncio

from aioretry_smithy import (
    Backoff,
    RequestLog,
    RetryingClient,
    RetryRule,
    SessionBuilder,
)
from aioretry_smithy.testing import ScriptedTransport

on_server_error_or_timeout = RetryRule(
    status_classes=[5], on_timeout=True, on_unprocessed=True
)
on_conflict = RetryRule(statuses=[409], backoff=Backoff.fixed(0.1))
rules = on_server_error_or_timeout | on_conflict


async def main() -> None:
    builder = (
        SessionBuilder("https://api.example.com")
        .decorator(ScriptedTransport([503, 503, 409, 409, 503, 200]))
        .decorator(RetryingClient.new_decorator(rules))
    )
    async with builder.build() as session, session.put("/orders/1") as response:
        print(RequestLog.of(response).render())


asyncio.run(main())
