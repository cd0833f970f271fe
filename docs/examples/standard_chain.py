import asyncio

import aiohttp

from aioretry_smithy import (
    ClientRequestContext,
    FailFastError,
    HttpRequest,
    RequestLog,
    SessionBuilder,
)
from aioretry_smithy.testing import ScriptedTransport


async def busy(ctx: ClientRequestContext, request: HttpRequest) -> int:
    await asyncio.sleep(1.0)
    return 503


answers = [503, 429, 200, 503, *[503] * 4, 200, *[busy] * 5]
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
        print("a restart:")
        log = await call(session, "GET")
        print(log.render(), end="\n\n")
        print("an overload:")
        for _ in range(6):
            log = await call(session, "GET")
            outcome = log.response_status or type(log.response_cause).__name__
            print(f"{outcome}, attempts: {log.total_attempts}, {log.stop_reason}")


asyncio.run(main())
