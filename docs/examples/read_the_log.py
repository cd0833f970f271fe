import asyncio

from aioretry_smithy import (
    Backoff,
    RequestLog,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
    capture_logs,
)
from aioretry_smithy.testing import ScriptedTransport


async def main() -> None:
    strategy = RetryStrategy.failsafe(Backoff.fixed(1.0))
    builder = (
        SessionBuilder("https://api.example.com")
        .decorator(ScriptedTransport([503, (200, {}, b"two orders"), 404]))
        .decorator(RetryingClient.new_decorator(strategy))
    )
    async with builder.build() as session:
        with capture_logs() as logs:
            async with session.get("/orders") as response:
                log = RequestLog.of(response)
            async with session.get("/orders/3"):
                pass
    print(log.total_attempts, log.duration, log.response_length, log.stop_reason)
    for attempt in log.children:
        print(attempt.attempt, attempt.response_status, attempt.delay)
    print([str(each.stop_reason) for each in logs])


asyncio.run(main())
