import asyncio

from aioretry_smithy import (
    ContentPreviewingClient,
    RequestLog,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
)
from aioretry_smithy.testing import ScriptedTransport

JSON = {"Content-Type": "application/json"}
ANSWERS = [
    (503, JSON, b'{"error": "the shop opens at nine"}'),
    (200, JSON, b'{"token": "8d1f7a", "orders": [1, 2, 3, 4, 5, 6, 7, 8, 9]}'),
]


async def main() -> None:
    builder = (
        SessionBuilder("https://api.example.com")
        .decorator(ScriptedTransport(ANSWERS))
        .decorator(ContentPreviewingClient.new_decorator(50))
        .decorator(RetryingClient.new_decorator(RetryStrategy.failsafe()))
    )
    login = {"user": "ann", "password": "1234"}
    async with builder.build() as session:
        async with session.put("/login", json=login) as response:
            print(await response.json())
        log = RequestLog.of(response)
        print(log.render())
        print(log.response_content_preview)


asyncio.run(main())
