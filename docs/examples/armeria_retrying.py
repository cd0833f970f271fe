import asyncio

from aioretry_smithy import RetryingClient, RetryStrategy, SessionBuilder
from aioretry_smithy.testing import ScriptedTransport


async def main() -> None:
    strategy = RetryStrategy.on_server_error_status()
    builder = (
        SessionBuilder("https://api.example.com")
        .decorator(ScriptedTransport([503, (200, {}, b"two orders")]))
        .decorator(RetryingClient.new_decorator(strategy))
    )
    async with builder.build() as session, session.get("/orders") as response:
        print(response.status, await response.text())


asyncio.run(main())
