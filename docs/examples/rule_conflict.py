import asyncio

from aioretry_smithy import RequestLog, RetryingClient, RetryRule, SessionBuilder
from aioretry_smithy.testing import ScriptedTransport

rule = RetryRule(statuses=[409], on_timeout=True, on_unprocessed=True)


async def main() -> None:
    builder = (
        SessionBuilder("https://api.example.com")
        .decorator(ScriptedTransport([409, 409, 200]))
        .decorator(RetryingClient.new_decorator(rule))
    )
    async with builder.build() as session, session.put("/orders/1") as response:
        print(RequestLog.of(response).render())


asyncio.run(main())
