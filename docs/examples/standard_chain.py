import asyncio

import aiohttp

from aioretry_smithy import FailFastError, RequestLog, SessionBuilder
from aioretry_smithy.testing import ScriptedTransport

answers = [503, 429, 200, *[503] * 7]
builder = SessionBuilder.standard(
    "https://api.example.com",
    inside=[ScriptedTransport(answers)],  # without this line: the real network
)


async def call(session: aiohttp.ClientSession, method: str) -> RequestLog:
    try:
        async with session.request(method, "/orders") as response:
            return RequestLog.of(response)
    except FailFastError as error:
        return RequestLog.of(error)


async def main() -> None:
    async with builder.build() as session:
        for method in ("GET", "POST"):
            log = await call(session, method)
            print(log.render(), end="\n\n")
        print("an outage:")
        for _ in range(9):
            log = await call(session, "GET")
            outcome = log.response_status or type(log.response_cause).__name__
            print(f"{outcome}, attempts: {log.total_attempts}, {log.stop_reason}")


asyncio.run(main())
