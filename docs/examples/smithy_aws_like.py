import asyncio

from aioretry_smithy import RequestLog, RetryingClient, SessionBuilder
from aioretry_smithy.smithy import AdaptiveRetryStrategy, sdk_headers
from aioretry_smithy.testing import ScriptedTransport

strategy = AdaptiveRetryStrategy()


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
        print(request.headers["amz-sdk-request"].partition("; ttl")[0])
    quota = strategy.quota_for("orders.example.com:443")
    print(quota.available_capacity, "left in the quota")


asyncio.run(main())
