import asyncio
from collections.abc import Iterable

import aiohttp

from aioretry_smithy import (
    Backoff,
    RequestLog,
    RetryBudget,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
)
from aioretry_smithy.testing import ScriptedTransport

budgets = RetryBudget.per_host()


def new_session(host: str, answers: Iterable[object]) -> aiohttp.ClientSession:
    decorator = RetryingClient.new_decorator(
        RetryStrategy.failsafe(Backoff.fixed(0.1)), limiter=budgets
    )
    return (
        SessionBuilder(f"https://{host}")
        .decorator(ScriptedTransport(answers))
        .decorator(decorator)
        .build()
    )


async def call(host: str, *answers: object) -> None:
    async with new_session(host, answers) as session, session.get("/") as response:
        log = RequestLog.of(response)
    budget = budgets.budget_for(f"{host}:443")
    print(
        f"{host}: {log.response_status}, attempts: {log.total_attempts}, "
        f"stop reason: {log.stop_reason}, tokens: {budget.tokens:.1f}"
    )


async def main() -> None:
    await call("orders.example.com", 503, 503, 503, 503)
    await call("orders.example.com", 503)
    await call("stock.example.com", 503, 200)
    await call("orders.example.com", 200)
    await call("orders.example.com", 503, 200)


asyncio.run(main())
