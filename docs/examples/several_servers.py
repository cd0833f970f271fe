import asyncio

import aiohttp

from aioretry_smithy import (
    ClientRequestContext,
    EndpointGroup,
    EndpointSelectionStrategy,
    HttpRequest,
    RequestLog,
    SessionBuilder,
)
from aioretry_smithy.testing import ScriptedTransport

EU, US = "https://eu.example.com", "https://us.example.com/v1/"


def answer(ctx: ClientRequestContext, request: HttpRequest) -> int:
    if request.url.host == "eu.example.com":
        raise aiohttp.ConnectionTimeoutError("no connection in time")
    return 200


async def main() -> None:
    group = EndpointGroup.of(EU, US, selection=EndpointSelectionStrategy.in_order())
    transport = ScriptedTransport([answer] * 3)
    builder = SessionBuilder.standard(group, inside=[transport])
    async with builder.build() as session:
        for _ in range(2):
            async with session.get("/orders") as response:
                print(RequestLog.of(response).render())
        for endpoint, state in group.states.items():
            print(f"{endpoint}: {state.reason or 'well'}")


asyncio.run(main())
