import asyncio

from aioretry_smithy import (
    Backoff,
    ClientRequestContext,
    RequestLog,
    RetryingClient,
    RetryStrategyWithContent,
    SessionBuilder,
    is_timeout,
    is_unprocessed,
)
from aioretry_smithy.testing import ScriptedTransport


class RetryWhenAsked(RetryStrategyWithContent):
    max_content_length = 1024  # bytes; enough to see the question

    def __init__(self) -> None:
        self.backoff = Backoff.of_default()

    def should_retry(
        self, ctx: ClientRequestContext, cause: Exception | None, content: bytes | None
    ) -> Backoff | None:
        if is_timeout(cause) or is_unprocessed(cause):
            return self.backoff
        return self.backoff if content == b"Should I retry?" else None


async def main() -> None:
    answers = [(200, {}, b"Should I retry?"), TimeoutError(), (200, {}, b"two orders")]
    builder = (
        SessionBuilder("https://api.example.com")
        .decorator(ScriptedTransport(answers))
        .decorator(RetryingClient.new_decorator(RetryWhenAsked()))
    )
    async with builder.build() as session, session.get("/orders") as response:
        print(await response.text())
        print(RequestLog.of(response).render())


asyncio.run(main())
