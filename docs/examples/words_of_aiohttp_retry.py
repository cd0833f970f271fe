import asyncio

import aiohttp

from aioretry_smithy import (
    Backoff,
    ClientRequestContext,
    HttpClient,
    HttpRequest,
    RequestLog,
    RetryingClient,
    RetryRule,
    RetryStrategy,
    SessionBuilder,
    client_decorator,
)
from aioretry_smithy.testing import ScriptedTransport


class ListBackoff(Backoff):
    def next_delay(self, num_attempts_so_far: int) -> float | None:
        return (1.0, 2.0, 3.0, None)[num_attempts_so_far - 1]  # None ends it


no_posts = RetryRule.no_retry(methods=["POST", "PATCH"])
strategy = no_posts | RetryStrategy.on_server_error_status(ListBackoff())


@client_decorator
async def number_attempts(
    delegate: HttpClient, ctx: ClientRequestContext, request: HttpRequest
) -> aiohttp.ClientResponse:
    numbered = {"current_attempt": ctx.attempt}
    return await delegate.execute(ctx, request.replace(trace_request_ctx=numbered))


async def main() -> None:
    transport = ScriptedTransport([503, 503, 503, 200, 503])
    builder = (
        SessionBuilder("https://api.example.com")
        .decorator(transport)
        .decorator(number_attempts)
        .decorator(RetryingClient.new_decorator(strategy))
    )
    async with builder.build() as session:
        for method in ("DELETE", "POST"):
            async with session.request(method, "/orders/7") as response:
                print(RequestLog.of(response).render())
    print([request.options["trace_request_ctx"] for request in transport.requests])


asyncio.run(main())
