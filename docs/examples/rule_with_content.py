import asyncio

from aioretry_smithy import (
    RequestLog,
    RetryingClient,
    RetryRuleWithContent,
    SessionBuilder,
)
from aioretry_smithy.testing import ScriptedTransport


def is_pending(content: bytes | None) -> bool:
    return content is not None and b'"pending"' in content


rule = RetryRuleWithContent(
    methods=["GET"], status_classes=[5], on_content=is_pending, max_content_length=1024
)


async def main() -> None:
    answers = [503, {"state": "pending"}, {"state": "done"}]
    builder = (
        SessionBuilder("https://api.example.com")
        .decorator(ScriptedTransport(answers))
        .decorator(RetryingClient.new_decorator(rule))
    )
    async with builder.build() as session, session.get("/reports/7") as response:
        print(await response.text())
        print(RequestLog.of(response).render())


asyncio.run(main())
