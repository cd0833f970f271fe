import asyncio

import aiohttp

from aioretry_smithy import (
    ClientRequestContext,
    HttpClient,
    HttpRequest,
    SessionBuilder,
    client_decorator,
    request_options,
)
from aioretry_smithy.testing import ScriptedTransport


@client_decorator
async def show(
    delegate: HttpClient, ctx: ClientRequestContext, request: HttpRequest
) -> aiohttp.ClientResponse:
    print(f"{request.url.path}: {ctx.remaining():.0f} s, {ctx.attributes}")
    return await delegate.execute(ctx, request)


async def main() -> None:
    builder = (
        SessionBuilder("https://api.example.com")
        .decorator(ScriptedTransport([200] * 5))
        .decorator(show)
        .response_timeout(10.0)
    )
    async with builder.build() as session, asyncio.TaskGroup() as tasks:
        # A task from before the block does not get its settings.
        tasks.create_task(session.get("/other-task"))
        with request_options(response_timeout=3.0, attributes={"tenant": 7}):
            await session.get("/outer")
            with request_options(attributes={"page": 1}):
                await session.get("/inner")
            tasks.create_task(session.get("/task-of-the-block"))
        await session.get("/after")


asyncio.run(main())
