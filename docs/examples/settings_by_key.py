import asyncio

import aiohttp

from aioretry_smithy import (
    Backoff,
    ClientRequestContext,
    HttpRequest,
    RequestLog,
    RetryBudget,
    RetryConfig,
    RetryConfigMapping,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
    request_options,
)
from aioretry_smithy.testing import ScriptedTransport

strategy = RetryStrategy.failsafe(Backoff.fixed(0.1))
budgets = RetryBudget.per_host(unserved_cost=0.1)  # made once, for all keys
settings = {
    "urgent": RetryConfig(strategy, max_total_attempts=3, limiter=budgets),
    "normal": RetryConfig(strategy, max_total_attempts=2, limiter=budgets),
    "idle": RetryConfig.no_retry(),
}


def priority(ctx: ClientRequestContext, request: HttpRequest) -> str:
    return str(ctx.attributes.get("priority", "normal"))


async def call(session: aiohttp.ClientSession) -> None:
    async with session.get("/orders") as response:
        log = RequestLog.of(response)
    print(f"{log.response_status}, attempts: {log.total_attempts}")


async def main() -> None:
    mapping = RetryConfigMapping.of(priority, lambda key: settings[key])
    builder = SessionBuilder.standard(
        "https://api.example.com",
        retrying=RetryingClient.new_mapped_decorator(mapping),
        inside=[ScriptedTransport([503, 503, 200, 503, 503, 503])],
    )
    async with builder.build() as session:
        with request_options(attributes={"priority": "urgent"}):
            await call(session)
        await call(session)
        with request_options(attributes={"priority": "idle"}):
            await call(session)


asyncio.run(main())
