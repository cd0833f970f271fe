import asyncio
import uuid

import aiohttp

from aioretry_smithy import (
    ClientRequestContext,
    HttpClient,
    HttpRequest,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
    client_decorator,
)
from aioretry_smithy.testing import ScriptedTransport


@client_decorator
async def idempotency_key(
    delegate: HttpClient, ctx: ClientRequestContext, request: HttpRequest
) -> aiohttp.ClientResponse:
    if request.method == "POST" and "Idempotency-Key" not in request.headers:
        request = request.with_header("Idempotency-Key", str(uuid.uuid4()))
    return await delegate.execute(ctx, request)


async def main() -> None:
    transport = ScriptedTransport([503, 200, 200])
    builder = (
        SessionBuilder("https://api.example.com")
        .decorator(transport)
        .decorator(RetryingClient.new_decorator(RetryStrategy.failsafe()))
        .decorator(idempotency_key)  # outside: one key for all attempts of a call
    )
    async with builder.build() as session:
        await session.post("/payments", json={"amount": 7})
        await session.post("/payments", headers={"Idempotency-Key": "mine"})
    first, retry, own = (
        request.headers["Idempotency-Key"] for request in transport.requests
    )
    print(first == retry, own)


asyncio.run(main())
