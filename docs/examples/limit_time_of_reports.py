import asyncio

import aiohttp

from aioretry_smithy import (
    ClientRequestContext,
    HttpClient,
    HttpRequest,
    RequestLog,
    ResponseTimeoutMode,
    SessionBuilder,
    client_decorator,
)
from aioretry_smithy.testing import ScriptedTransport


async def slow(ctx: ClientRequestContext, request: HttpRequest) -> int:
    await asyncio.sleep(5.0)
    return 200


@client_decorator
async def patience_for_reports(
    delegate: HttpClient, ctx: ClientRequestContext, request: HttpRequest
) -> aiohttp.ClientResponse:
    if request.url.path.startswith("/reports/"):
        ctx.set_response_timeout(30.0, ResponseTimeoutMode.SET_FROM_START)
    return await delegate.execute(ctx, request)


async def main() -> None:
    builder = (
        SessionBuilder("https://api.example.com")
        .decorator(ScriptedTransport([slow, slow]))
        .decorator(patience_for_reports)
        .response_timeout(3.0)
    )
    async with builder.build() as session:
        async with session.get("/reports/2024") as response:
            print(RequestLog.of(response).render())
        try:
            await session.get("/orders")
        except TimeoutError as error:
            print(RequestLog.of(error).render())


asyncio.run(main())
