import asyncio
import json

from aioretry_smithy import (
    Backoff,
    ClientRequestContext,
    RequestLog,
    RetryDecision,
    RetryingClient,
    RetryStrategy,
    RetryStrategyWithContent,
    SessionBuilder,
)
from aioretry_smithy.testing import ScriptedTransport


class WaitAsTheBodySays(RetryStrategyWithContent):
    max_content_length = 64 * 1024  # bytes

    def should_retry(
        self, ctx: ClientRequestContext, cause: Exception | None, content: bytes | None
    ) -> Backoff | RetryDecision | None:
        if ctx.log.response_status != 429 or content is None:
            return None
        try:
            seconds = float(json.loads(content)["details"]["retryAfterSeconds"])
            wait = Backoff.fixed(seconds)
        except (ValueError, LookupError, TypeError):
            return None  # whatever stands behind this strategy decides
        return wait if seconds <= 60 else RetryDecision.no_retry()


async def main() -> None:
    strategy = WaitAsTheBodySays() | RetryStrategy.failsafe(Backoff.fixed(0.5))
    busy = b'{"details": {"retryAfterSeconds": 3}}'
    builder = (
        SessionBuilder("https://api.example.com")
        .decorator(ScriptedTransport([(429, {}, busy), (429, {}, b"busy"), 200]))
        .decorator(RetryingClient.new_decorator(strategy))
    )
    async with builder.build() as session, session.get("/orders") as response:
        print(RequestLog.of(response).render())


asyncio.run(main())
