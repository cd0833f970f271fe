import asyncio

import aiohttp

from aioretry_smithy import (
    Backoff,
    RetryingClient,
    RetryingRpcClient,
    RetryRule,
    RetryStrategy,
    SessionBuilder,
    capture_logs,
    rpc,
)
from aioretry_smithy.testing import ScriptedTransport, VirtualTimeLoop


class ChangedError(Exception):
    pass


@rpc(
    RetryingRpcClient.new_decorator(
        RetryRule(
            exceptions=[ChangedError], on_timeout=True, backoff=Backoff.fixed(0.1)
        ),
        max_total_attempts=3,
        attempt_timeout=2.0,
    ),
    response_timeout=5.0,
)
async def load_orders(session: aiohttp.ClientSession) -> list[int]:
    orders, versions = [], set()
    for page in (1, 2):
        async with session.get("/orders", params={"page": page}) as response:
            response.raise_for_status()
            orders += await response.json()
            versions.add(response.headers["ETag"])
    if len(versions) > 1:
        raise ChangedError("page 2 is of another version")
    return orders


async def main() -> None:
    answers = [
        (200, {"ETag": '"1"'}, [17, 18]),
        503,
        (200, {"ETag": '"2"'}, [19]),
        (200, {"ETag": '"2"'}, [16, 17]),
        (200, {"ETag": '"2"'}, [18, 19]),
    ]
    strategy = RetryStrategy.failsafe(Backoff.fixed(0.2))
    builder = (
        SessionBuilder("https://api.example.com")
        .decorator(ScriptedTransport(answers))
        .decorator(RetryingClient.new_decorator(strategy))
    )
    async with builder.build() as session:
        with capture_logs() as logs:
            print(await load_orders(session))
    print(logs[0].render())


with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
    runner.run(main())
