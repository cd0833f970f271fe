import asyncio
import uuid

import aiohttp

from aioretry_smithy import (
    ClientRequestContext,
    HttpClient,
    HttpRequest,
    RequestLog,
    RetryingClient,
    SessionBuilder,
    client_decorator,
)
from aioretry_smithy.smithy import AdaptiveRetryStrategy
from aioretry_smithy.testing import ScriptedTransport

strategy = AdaptiveRetryStrategy()


@client_decorator
async def sdk_headers(
    delegate: HttpClient, ctx: ClientRequestContext, request: HttpRequest
) -> aiohttp.ClientResponse:
    """Say which call and which attempt it is, as the SDKs do."""
    call = ctx.root.attributes.setdefault("invocation-id", str(uuid.uuid4()))
    request = request.with_header("amz-sdk-invocation-id", call)
    number = f"attempt={ctx.attempt}; max={strategy.max_attempts}"
    request = request.with_header("amz-sdk-request", number)
    return await delegate.execute(ctx, request)


async def main() -> None:
    json_1_0 = {"Content-Type": "application/x-amz-json-1.0"}
    throttled = b'{"__type": "com.example#ThrottlingException"}'
    transport = ScriptedTransport(
        [(400, json_1_0, throttled), 500, (200, json_1_0, b'{"Items": []}')]
    )
    builder = (
        SessionBuilder("https://orders.example.com")
        .decorator(transport)
        .decorator(sdk_headers)
        .decorator(RetryingClient.new_decorator(strategy, retry_count_header=None))
    )
    async with builder.build() as session, session.post("/", json={}) as response:
        print(RequestLog.of(response).render())
    for request in transport.requests:
        print(request.headers["amz-sdk-request"])
    quota = strategy.quota_for("orders.example.com:443")
    print(quota.available_capacity, "left in the quota")


asyncio.run(main())
