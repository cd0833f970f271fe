import asyncio

from aioretry_smithy import (
    Backoff,
    HttpRequest,
    RequestLog,
    RetryingClient,
    RetryRule,
    RetryStrategy,
    SessionBuilder,
)
from aioretry_smithy.testing import ScriptedTransport


def is_payment(request: HttpRequest) -> bool:
    return request.url.path.startswith("/payments")


strategy = (
    RetryRule.no_retry(request_filter=is_payment)
    | RetryRule.no_retry(statuses=[501])
    | RetryRule(statuses=[409], backoff=Backoff.fixed(0.1))
    | RetryStrategy.failsafe(Backoff.fixed(0.5))
)


async def main() -> None:
    builder = (
        SessionBuilder("https://api.example.com")
        .decorator(ScriptedTransport([503, 503, 409, 501]))
        .decorator(RetryingClient.new_decorator(strategy))
    )
    async with builder.build() as session:
        for path in ("/payments/1", "/orders/1"):
            async with session.put(path) as response:
                print(RequestLog.of(response).render())


asyncio.run(main())
