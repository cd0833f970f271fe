import asyncio
import hashlib
import hmac

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


@client_decorator
async def sign(
    delegate: HttpClient, ctx: ClientRequestContext, request: HttpRequest
) -> aiohttp.ClientResponse:
    # request.url has no params= yet.
    text = f"{ctx.attempt} {request.method} {request.full_url().raw_path_qs}"
    signature = hmac.new(b"secret", text.encode(), hashlib.sha256).hexdigest()
    request = request.with_header("X-Signature", signature[:8])
    return await delegate.execute(ctx, request)


async def main() -> None:
    transport = ScriptedTransport([503, 503, 200])
    builder = SessionBuilder.standard(
        "https://api.example.com",
        inside=[transport, sign],  # from the innermost
    )
    async with (
        builder.build() as session,
        session.get("/orders", params={"page": "2"}) as response,
    ):
        print(RequestLog.of(response).render())
    print([request.headers["X-Signature"] for request in transport.requests])


asyncio.run(main())
