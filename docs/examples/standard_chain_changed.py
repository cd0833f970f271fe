import asyncio
from collections.abc import Iterable

from aioretry_smithy import RequestLog, RetryBudget, SessionBuilder, smithy
from aioretry_smithy.testing import ScriptedTransport

budgets = RetryBudget.per_host(capacity=50, unserved_cost=0.1)


def builder_for(host: str, answers: Iterable[object]) -> SessionBuilder:
    return SessionBuilder.standard(
        f"https://{host}",
        response_timeout=60.0,
        strategy=smithy.StandardRetryStrategy(),
        max_total_attempts=2,
        limiter=budgets,
        logging=None,
        headers={"User-Agent": "shop/1.0"},
        inside=[ScriptedTransport(answers)],
    )


async def main() -> None:
    builder = builder_for("orders.example.com", [500, 201])
    for line in builder.describe().splitlines():
        print(line.partition("(")[0])
    async with builder.build() as session, session.post("/orders") as response:
        print(RequestLog.of(response).render())
    print(budgets.budget_for("orders.example.com:443").tokens, "tokens left")


asyncio.run(main())
