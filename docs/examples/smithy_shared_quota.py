import asyncio
from collections.abc import Iterable

import aiohttp

from aioretry_smithy import RequestLog, RetryingClient, SessionBuilder
from aioretry_smithy.smithy import StandardRetryQuota, StandardRetryStrategy
from aioretry_smithy.testing import ScriptedTransport

quota = StandardRetryQuota(40)  # enough for two retries at 14


def new_session(host: str, answers: Iterable[object]) -> aiohttp.ClientSession:
    strategy = StandardRetryStrategy(retry_quota=quota)
    return (
        SessionBuilder(f"https://{host}")
        .decorator(ScriptedTransport(answers))
        .decorator(RetryingClient.new_decorator(strategy))
        .build()
    )


async def call(host: str, *answers: object) -> None:
    async with new_session(host, answers) as session, session.get("/") as response:
        print(RequestLog.of(response).render())
        print(quota.available_capacity, "left", end="\n\n")


async def main() -> None:
    await call("orders.example.com", 500, 500, 500)
    await call("stock.example.com", 503)
    await call("stock.example.com", 200)


asyncio.run(main())
