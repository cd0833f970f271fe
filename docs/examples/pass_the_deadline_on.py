import asyncio
import math
from contextvars import ContextVar

import aiohttp

from aioretry_smithy import (
    ClientRequestContext,
    HttpClient,
    HttpRequest,
    RequestLog,
    SessionBuilder,
    client_decorator,
)
from aioretry_smithy.testing import ScriptedTransport

DEADLINE: ContextVar[float] = ContextVar("DEADLINE", default=math.inf)


def take_deadline(seconds: str | None) -> None:
    """In a middleware, with the header of the request that comes in."""
    if seconds is not None:
        DEADLINE.set(asyncio.get_running_loop().time() + float(seconds))


@client_decorator
async def keep_deadline(
    delegate: HttpClient, ctx: ClientRequestContext, request: HttpRequest
) -> aiohttp.ClientResponse:
    left = DEADLINE.get() - asyncio.get_running_loop().time()
    if left < ctx.remaining():
        ctx.set_response_timeout(max(left, 0.001))
    return await delegate.execute(ctx, request)


@client_decorator
async def send_deadline(
    delegate: HttpClient, ctx: ClientRequestContext, request: HttpRequest
) -> aiohttp.ClientResponse:
    request = request.with_header("X-Request-Timeout", f"{ctx.remaining():.3f}")
    print(request.url.path, request.headers["X-Request-Timeout"])
    return await delegate.execute(ctx, request)


async def slow(ctx: ClientRequestContext, request: HttpRequest) -> int:
    await asyncio.sleep(0.9)
    return 200


async def main() -> None:
    builder = SessionBuilder.standard(
        "https://api.example.com",
        inside=[ScriptedTransport([slow, slow, slow]), send_deadline],
        logging=None,
        response_timeout=10.0,
        attempt_timeout=2.0,
    ).decorator(keep_deadline)
    async with builder.build() as session:
        take_deadline("2.5")
        await session.get("/orders/1")
        await session.get("/orders/1/items")
        try:
            await session.get("/orders/1/prices")
        except TimeoutError as error:
            print(RequestLog.of(error).render())


asyncio.run(main())
