import asyncio

import aiohttp

from aioretry_smithy import (
    ClientRequestContext,
    HttpRequest,
    RequestLog,
    RetryingClient,
    RetryingRpcClient,
    RetryRule,
    RetryStrategy,
    SessionBuilder,
    rpc,
)
from aioretry_smithy.testing import ScriptedTransport, VirtualTimeLoop


async def silence(ctx: ClientRequestContext, request: HttpRequest) -> int:
    await asyncio.sleep(60.0)
    return 200


@rpc(
    RetryingRpcClient.new_decorator(RetryRule(on_timeout=True), attempt_timeout=3.0),
    response_timeout=5.0,
)
async def load(session: aiohttp.ClientSession) -> bytes:
    async with session.get("/report") as response:
        return await response.read()


async def main() -> None:
    builder = (
        SessionBuilder("https://api.example.com")
        .decorator(ScriptedTransport([silence] * 9))
        .decorator(RetryingClient.new_decorator(RetryStrategy.failsafe()))
        .response_timeout(60.0)
    )
    async with builder.build() as session:
        try:
            await load(session)
        except TimeoutError as error:
            print(f"{type(error).__name__}: {error}")
            print(RequestLog.of(error).render())


with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
    runner.run(main())
