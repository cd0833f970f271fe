import asyncio

import aiohttp

from aioretry_smithy import (
    ClientRequestContext,
    HttpClient,
    HttpRequest,
    SessionBuilder,
    client_decorator,
)
from aioretry_smithy.testing import ScriptedTransport


@client_decorator
async def user_agent(
    delegate: HttpClient, ctx: ClientRequestContext, request: HttpRequest
) -> aiohttp.ClientResponse:
    request = request.with_header("User-Agent", "shop/1.0")
    return await delegate.execute(ctx, request)


async def main() -> None:
    transport = ScriptedTransport([200])
    builder = SessionBuilder().decorator(transport).decorator(user_agent)
    async with builder.build() as session, session.get("https://api.example.com/"):
        print(transport.requests[0].headers["User-Agent"])


asyncio.run(main())
