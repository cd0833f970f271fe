import asyncio

from aioretry_smithy import (
    Backoff,
    ClientRequestContext,
    RequestLog,
    RetryingClient,
    RetryRule,
    RetryStrategyWithContent,
    SessionBuilder,
)
from aioretry_smithy.testing import ScriptedTransport


class RetryWhenAsked(RetryStrategyWithContent):
    max_content_length = 1024
    backoff = Backoff.of_default()

    def should_retry(
        self, ctx: ClientRequestContext, cause: Exception | None, content: bytes | None
    ) -> Backoff | None:
        return self.backoff if content == b"Should I retry?" else None


strategy = RetryRule(on_timeout=True, on_unprocessed=True) | RetryWhenAsked()


async def main() -> None:
    answers = [(200, {}, b"Should I retry?"), TimeoutError(), (200, {}, b"two orders")]
    builder = (
        SessionBuilder("https://api.example.com")
        .decorator(ScriptedTransport(answers))
        .decorator(RetryingClient.new_decorator(strategy))
    )
    async with builder.build() as session, session.get("/orders") as response:
        print(await response.text())
        print(RequestLog.of(response).render())


asyncio.run(main())
